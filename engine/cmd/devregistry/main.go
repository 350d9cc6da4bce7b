// Command devregistry serves an empty OCI registry on loopback, and directories of charts and of git repositories
// beside it, until its standard input closes. It first prints one line of JSON: its addresses, and what to trust and to
// show there.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/devgit"
	"github.com/pilothouse-dev/pilothouse/engine/internal/devregistry"
)

type options struct {
	dir, charts, git, user, password string
	secure                           bool
}

func main() {
	var asked options
	flag.StringVar(&asked.dir, "dir", os.TempDir(), "where its password file goes")
	flag.StringVar(&asked.charts, "charts", "", "a directory to serve beside the registry")
	flag.StringVar(&asked.git, "git", "", "a directory of bare git repositories to serve below /git/ and over SSH")
	flag.StringVar(&asked.user, "user", "", "who may use it; anyone by default")
	flag.StringVar(&asked.password, "password", "", "that user's password")
	flag.BoolVar(&asked.secure, "tls", false, "serve TLS with a certificate of its own")
	flag.Parse()
	if err := run(asked); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(asked options) error {
	greeting := map[string]string{}
	routes, err := everything(asked, greeting)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	greeting["address"] = listener.Addr().String()
	if asked.secure {
		pair, certificate, err := devregistry.Certificate()
		if err != nil {
			return err
		}
		greeting["certificate"] = string(certificate)
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}})
	}
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	if err := json.NewEncoder(os.Stdout).Encode(greeting); err != nil {
		return err
	}
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// everything is what is served over HTTP; what a client has to know of it goes into the greeting.
func everything(asked options, greeting map[string]string) (http.Handler, error) {
	registry, err := devregistry.New(context.Background(), asked.dir, asked.user, asked.password)
	if err != nil {
		return nil, err
	}
	signer, public, err := devregistry.NewSigner()
	if err != nil {
		return nil, err
	}
	greeting["signer"] = string(public)
	routes := http.NewServeMux()
	routes.Handle("/v2/", registry)
	routes.Handle("/cosign/", http.StripPrefix("/cosign/", signing(registry, signer)))
	if asked.charts != "" {
		routes.Handle("/", guarded(http.FileServer(http.Dir(asked.charts)), asked))
	}
	if asked.git == "" {
		return routes, nil
	}
	repositories, err := gitBackend(asked.git)
	if err != nil {
		return nil, err
	}
	routes.Handle("/git/", guarded(http.StripPrefix("/git", repositories), asked))
	overSSH, err := devgit.Serve(asked.git)
	if err != nil {
		return nil, err
	}
	greeting["ssh"] = overSSH.Address
	greeting["ssh_key"], greeting["known_hosts"] = string(overSSH.PrivateKey), overSSH.KnownHosts
	return routes, nil
}

// gitBackend is git's own server for repositories below a directory.
func gitBackend(root string) (http.Handler, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	return &cgi.Handler{
		Path: program, Args: []string{"http-backend"}, Dir: root, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"},
	}, nil
}

func guarded(files http.Handler, asked options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		user, password, _ := request.BasicAuth()
		if asked.user != "" && (user != asked.user || password != asked.password) {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		files.ServeHTTP(w, request)
	})
}
