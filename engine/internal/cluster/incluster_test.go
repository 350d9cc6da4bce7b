package cluster

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// pod lays out a pod's account for a server; the token is the server's to check.
func pod(t *testing.T, server *httptest.Server, token string) string {
	t.Helper()
	dir := t.TempDir()
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	t.Setenv(serviceAccountVariable, dir)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	write(t, filepath.Join(dir, "ca.crt"), string(authority))
	write(t, filepath.Join(dir, "token"), token)
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAPodsTokenStaysAFile(t *testing.T) {
	seen := ""
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		seen = request.Header.Get("Authorization")
	}))
	defer server.Close()
	dir := pod(t, server, "first")
	config, err := inCluster()
	if err != nil {
		t.Fatal(err)
	}
	// client-go reads a token's file again every minute; a token in the config would be for good.
	if config.BearerTokenFile != filepath.Join(dir, "token") || config.BearerToken != "" {
		t.Error("the token is not its file")
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Get(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if seen != "Bearer first" {
		t.Errorf("the server saw %q", seen)
	}
}

func TestWhatAPodLacksIsNamed(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	for name, lack := range map[string]func(dir string) error{
		"KUBERNETES_SERVICE_HOST": func(string) error { return os.Unsetenv("KUBERNETES_SERVICE_HOST") },
		"ca.crt":                  func(dir string) error { return os.Remove(filepath.Join(dir, "ca.crt")) },
		"token":                   func(dir string) error { return os.Remove(filepath.Join(dir, "token")) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := lack(pod(t, server, "token")); err != nil {
				t.Fatal(err)
			}
			_, err := inCluster()
			if !fault.Is(err, enginev1.Fault_INVALID) || !strings.Contains(err.Error(), name) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
