package chart

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/gitsource"
)

// gitServer is a repository of the real git, served by the real `git http-backend`.
type gitServer struct {
	*httptest.Server
	t             *testing.T
	work          string
	listed, given atomic.Int32
}

func newGitServer(t *testing.T) *gitServer {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	made := &gitServer{t: t, work: t.TempDir()}
	made.git("init", "-q", "-b", "main")
	made.git("init", "-q", "--bare", "-b", "main", filepath.Join(root, "charts.git"))
	made.git("remote", "add", "origin", filepath.Join(root, "charts.git"))
	backend := &cgi.Handler{
		Path: program, Args: []string{"http-backend"}, Dir: root, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"},
	}
	made.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodGet {
			made.listed.Add(1)
		} else {
			made.given.Add(1)
		}
		backend.ServeHTTP(w, request)
	}))
	t.Cleanup(made.Close)
	return made
}

func (g *gitServer) git(arguments ...string) string {
	g.t.Helper()
	command := exec.Command("git", arguments...)
	command.Dir = g.work
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := command.CombinedOutput()
	if err != nil {
		g.t.Fatalf("git %v: %v\n%s", arguments, err, out)
	}
	return strings.TrimSpace(string(out))
}

// publish commits the chart with that version, under a tag, and returns the commit.
func (g *gitServer) publish(version string) string {
	g.t.Helper()
	place := filepath.Join(g.work, "charts", "small")
	if err := os.MkdirAll(place, 0o755); err != nil {
		g.t.Fatal(err)
	}
	text := "apiVersion: v2\nname: small\nversion: " + version + "\n"
	if err := os.WriteFile(filepath.Join(place, "Chart.yaml"), []byte(text), 0o644); err != nil {
		g.t.Fatal(err)
	}
	g.git("add", "-A")
	g.git("commit", "-q", "-m", version)
	g.git("tag", "v"+version)
	g.git("push", "-q", "-f", "--all", "origin")
	g.git("push", "-q", "-f", "--tags", "origin")
	return g.git("rev-parse", "HEAD")
}

func (g *gitServer) source(reference *enginev1.GitSource) *enginev1.ChartSource {
	reference.Url, reference.Path = g.URL+"/charts.git", "charts/small"
	return &enginev1.ChartSource{Git: reference, PlainHttp: true}
}

func gitStore(t *testing.T, allow ...string) *Store {
	t.Helper()
	guard, err := egress.New(egress.Policy{Allow: allow})
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	s.RegisterGit(gitsource.New(guard, t.TempDir(), gitsource.Limits{}))
	return s
}

func TestGitCommitIsFetchedOnce(t *testing.T) {
	server := newGitServer(t)
	first, second := server.publish("1.0.0"), server.publish("1.1.0")
	s := gitStore(t, "127.0.0.1:*")
	ctx := context.Background()
	for _, row := range []struct {
		reference *enginev1.GitSource
		version   string
	}{
		{&enginev1.GitSource{}, "1.1.0"},
		{&enginev1.GitSource{Branch: "main"}, "1.1.0"},
		{&enginev1.GitSource{Semver: "^1"}, "1.1.0"},
		{&enginev1.GitSource{Commit: second}, "1.1.0"},
		{&enginev1.GitSource{Tag: "v1.0.0"}, "1.0.0"},
		{&enginev1.GitSource{Commit: first, Branch: "main"}, "1.0.0"},
	} {
		info, err := s.Resolve(ctx, server.source(row.reference))
		if err != nil || info.Version != row.version {
			t.Errorf("%v: %v %v", row.reference, info, err)
		}
	}
	// Each fetch asks twice: for the trees, and for the files of the chart.
	if given := server.given.Load(); given > 4 {
		t.Errorf("two commits took %d requests", given)
	}
	before := server.listed.Load()
	if _, err := s.Resolve(ctx, server.source(&enginev1.GitSource{Commit: second})); err != nil || server.listed.Load() != before {
		t.Errorf("a known commit was asked for again: %v", err)
	}
}

func TestGitTellsAllWithOneRequest(t *testing.T) {
	server := newGitServer(t)
	first, second := server.publish("1.0.0"), server.publish("1.1.0")
	s := gitStore(t, "127.0.0.1:*")
	answers, err := s.FindVersions(context.Background(), server.source(&enginev1.GitSource{}), []Query{
		{Version: "branch main", Held: first}, {Version: "semver ~1.0"}, {Version: "", Held: second},
		{Version: "tag v1.1.0"}, {Version: "branch none"}, {Version: "commit x"},
	}, 0)
	if err != nil || server.listed.Load() != 1 || server.given.Load() != 0 {
		t.Fatalf("%v, %d requests", err, server.listed.Load())
	}
	for i, want := range []Answer{
		{Version: second, Newer: true}, {Version: first, Tag: "v1.0.0", Newer: true}, {Version: second}, {Version: second, Tag: "v1.1.0", Newer: true},
	} {
		if answers[i] != want {
			t.Errorf("%d: %+v, want %+v", i, answers[i], want)
		}
	}
	wantFault(t, answers[4].Err, enginev1.Fault_CHART_NOT_FOUND, `no branch "none"`)
	wantFault(t, answers[5].Err, enginev1.Fault_CHART_INVALID, "neither a branch")
}

func TestGitWhereUsersMayNotGo(t *testing.T) {
	server := newGitServer(t)
	_, err := gitStore(t).Resolve(context.Background(), server.source(&enginev1.GitSource{}))
	wantFault(t, err, enginev1.Fault_INVALID, "is refused")
	_, err = newStore(t).Resolve(context.Background(), server.source(&enginev1.GitSource{}))
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "no source for git")
}

// Every credential for SSH reaches git: each complaint is about the next one.
func TestGitOverSSHWantsKeyAndHost(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	key, s := pem.EncodeToMemory(block), gitStore(t)
	for _, row := range []struct {
		git  *enginev1.GitSource
		kind enginev1.Fault_Kind
		says string
	}{
		{&enginev1.GitSource{}, enginev1.Fault_CHART_INVALID, "needs an SSH private key"},
		{&enginev1.GitSource{PrivateKey: key}, enginev1.Fault_CHART_INVALID, "has a passphrase"},
		{&enginev1.GitSource{PrivateKey: key, Passphrase: "open sesame"}, enginev1.Fault_CHART_INVALID, "needs known_hosts"},
		{&enginev1.GitSource{PrivateKey: key, Passphrase: "open sesame", KnownHosts: []byte("127.0.0.1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\n")}, enginev1.Fault_INVALID, "is refused"},
	} {
		row.git.Url = "ssh://git@127.0.0.1:9/charts.git"
		_, err := s.Resolve(context.Background(), &enginev1.ChartSource{Git: row.git})
		wantFault(t, err, row.kind, row.says)
	}
}
