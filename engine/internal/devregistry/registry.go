// Package devregistry is a real OCI registry (CNCF Distribution) in memory, for tests and development. Nothing of it
// is in the engine.
package devregistry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd" // registers itself
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory" // registers itself
	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/bcrypt"
)

// New returns an empty registry. With a user it wants that user's password, whose hash it keeps in dir.
func New(ctx context.Context, dir, user, password string) (http.Handler, error) {
	logrus.SetOutput(io.Discard) // the library logs through a global
	config := &configuration.Configuration{}
	config.Storage = configuration.Storage{"inmemory": configuration.Parameters{}}
	if user != "" {
		hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(dir, "htpasswd")
		if err := os.WriteFile(file, fmt.Appendf(nil, "%s:%s\n", user, hash), 0o600); err != nil {
			return nil, err
		}
		config.Auth = configuration.Auth{"htpasswd": configuration.Parameters{"realm": "charts", "path": file}}
	}
	return handlers.NewApp(ctx, config), nil
}
