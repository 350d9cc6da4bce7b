package gitsource

import (
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/pilothouse-dev/pilothouse/engine/internal/devgit"
	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
)

const (
	user     = "jane"
	password = "hunter2"
)

// repository is a bare repository made by the real git, beside a work tree to commit from.
type repository struct {
	t    *testing.T
	root string // what servers serve
	work string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	made := &repository{t: t, root: t.TempDir(), work: t.TempDir()}
	made.git("init", "-q", "-b", "main")
	made.git("init", "-q", "--bare", "-b", "main", filepath.Join(made.root, "charts.git"))
	made.git("remote", "add", "origin", filepath.Join(made.root, "charts.git"))
	return made
}

// environment keeps the machine's own settings out.
func environment() []string {
	return append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
}

func (r *repository) git(arguments ...string) string {
	r.t.Helper()
	command := exec.Command("git", arguments...)
	command.Dir, command.Env = r.work, environment()
	out, err := command.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", arguments, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repository) write(name, content string) {
	r.t.Helper()
	file := filepath.Join(r.work, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// commit commits everything and publishes it; the id is given.
func (r *repository) commit(message string) string {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "-m", message)
	r.publish()
	return r.git("rev-parse", "HEAD")
}

func (r *repository) publish() {
	r.t.Helper()
	r.git("push", "-q", "-f", "--all", "origin")
	r.git("push", "-q", "-f", "--tags", "origin")
}

// configure sets something in what is served.
func (r *repository) configure(key, value string) {
	r.t.Helper()
	r.git("--git-dir", filepath.Join(r.root, "charts.git"), "config", key, value)
}

func (r *repository) chart(directory, version string) {
	r.t.Helper()
	r.write(filepath.Join(directory, "Chart.yaml"), "apiVersion: v2\nname: hello\nversion: "+version+"\n")
	r.write(filepath.Join(directory, "values.yaml"), "a: 1\n")
	r.write(filepath.Join(directory, "templates/all.yaml"), "kind: ConfigMap\n")
}

// serveHTTPS runs the real `git http-backend` behind TLS and a password.
func (r *repository) serveHTTPS() *httptest.Server {
	r.t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		r.t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Dir: r.root, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + r.root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"},
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		name, given, _ := request.BasicAuth()
		if (name != user || given != password) && request.Header.Get("Authorization") != "Bearer "+password {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who?", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, request)
	}))
	r.t.Cleanup(server.Close)
	return server
}

func (r *repository) overHTTPS(server *httptest.Server) Request {
	return Request{
		URL:         server.URL + "/charts.git",
		Credentials: Credentials{Username: user, Password: password},
		CABundle:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
}

// sshServer runs the real `git upload-pack` for one user key.
type sshServer struct{ *devgit.Server }

func (r *repository) serveSSH() *sshServer {
	r.t.Helper()
	server, err := devgit.Serve(r.root)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(server.Close)
	return &sshServer{server}
}

func (s *sshServer) request() Request {
	return Request{URL: "ssh://git@" + s.Address + "/charts.git", Credentials: Credentials{
		PrivateKey: s.PrivateKey, KnownHosts: []byte(s.KnownHosts),
	}}
}

func newKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	signer, private, err := devgit.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return signer, private
}

func newFetcher(t *testing.T, limits Limits) *Fetcher {
	t.Helper()
	guard, err := egress.New(egress.Policy{Allow: []string{"127.0.0.1:*"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Cleanup(func() {
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return New(guard, dir, limits)
}

func fetch(t *testing.T, request Request) (Result, error) {
	t.Helper()
	return newFetcher(t, Limits{}).Fetch(context.Background(), request)
}
