package gitsource

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

func TestHTTPSCredentials(t *testing.T) {
	r := newRepository(t)
	r.chart("", "1.0.0")
	r.commit("first")
	good := r.overHTTPS(r.serveHTTPS())
	bearer := good
	bearer.Credentials = Credentials{Bearer: password}
	if _, err := fetch(t, bearer); err != nil {
		t.Fatal(err)
	}
	for part, change := range map[string]func(*Request){
		"refused the credentials (HTTP 401)": func(q *Request) { q.Credentials.Password = "wrong" },
		"wants credentials, and none":        func(q *Request) { q.Credentials = Credentials{} },
		"certificate":                        func(q *Request) { q.CABundle = nil },
	} {
		bad := good
		change(&bad)
		_, err := fetch(t, bad)
		wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, part)
	}
	missing := good
	missing.URL = strings.Replace(good.URL, "charts.git", "other.git", 1)
	_, err := fetch(t, missing)
	wantFault(t, err, enginev1.Fault_CHART_NOT_FOUND, "no repository at")
	insecure := good
	insecure.CABundle, insecure.InsecureSkipTLSVerify = nil, true
	if _, err := fetch(t, insecure); err != nil {
		t.Fatal(err)
	}
}

func TestSSHCredentials(t *testing.T) {
	r := newRepository(t)
	r.chart("", "1.0.0")
	r.commit("first")
	server := r.serveSSH()
	good := server.request()
	_, strangersKey := newKey(t)
	otherHost, _ := newKey(t)
	for name, row := range map[string]struct {
		change func(*Request)
		kind   fault.Kind
		parts  []string
	}{
		"wrong host key": {func(q *Request) {
			q.Credentials.KnownHosts = []byte(knownhosts.Line([]string{server.Address}, otherHost.PublicKey()))
		}, enginev1.Fault_CHART_INVALID, []string{"not the one in known_hosts", "SHA256:"}},
		"unknown host": {func(q *Request) {
			q.Credentials.KnownHosts = []byte(knownhosts.Line([]string{"example.com"}, otherHost.PublicKey()))
		}, enginev1.Fault_CHART_INVALID, []string{"not in known_hosts", "ssh-keyscan -p", "SHA256:"}},
		"no known_hosts":  {func(q *Request) { q.Credentials.KnownHosts = nil }, enginev1.Fault_CHART_INVALID, []string{"needs known_hosts", "ssh-keyscan -p"}},
		"bad known_hosts": {func(q *Request) { q.Credentials.KnownHosts = []byte("hunter2") }, enginev1.Fault_CHART_INVALID, []string{"cannot be read"}},
		"stranger":        {func(q *Request) { q.Credentials.PrivateKey = strangersKey }, enginev1.Fault_CHART_UNAVAILABLE, []string{"refused the SSH key of git"}},
		"no key":          {func(q *Request) { q.Credentials.PrivateKey = nil }, enginev1.Fault_CHART_INVALID, []string{"needs an SSH private key"}},
		"not a key":       {func(q *Request) { q.Credentials.PrivateKey = []byte("hunter2") }, enginev1.Fault_CHART_INVALID, []string{"cannot be read"}},
		"no repository":   {func(q *Request) { q.URL = strings.Replace(q.URL, "charts", "other", 1) }, enginev1.Fault_CHART_NOT_FOUND, []string{"no repository at"}},
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			row.change(&bad)
			_, err := fetch(t, bad)
			wantFault(t, err, row.kind, row.parts...)
		})
	}
	for given, part := range map[string]string{"": "has a passphrase", "wrong": "fit its passphrase", password: ""} {
		locked := good
		locked.Credentials.PrivateKey, locked.Credentials.Passphrase = lock(t, server.PrivateKey), given
		_, err := fetch(t, locked)
		if part == "" && err != nil {
			t.Fatal(err)
		} else if part != "" {
			wantFault(t, err, enginev1.Fault_CHART_INVALID, part)
		}
	}
	hashed := good
	hashed.Credentials.KnownHosts = []byte(knownhosts.HashHostname(knownhosts.Normalize(server.Address)) + " " +
		strings.SplitN(string(good.Credentials.KnownHosts), " ", 2)[1])
	if _, err := fetch(t, hashed); err != nil {
		t.Fatal(err)
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"https://example.com/a/b.git":       "https://example.com/a/b.git",
		"https://jane@example.com:8443/a":   "https://example.com:8443/a",
		"ssh://git@example.com/a":           "ssh://example.com/a",
		"ssh://example.com:2222/~jane/a":    "ssh://example.com:2222/~jane/a",
		"git@example.com:a/b.git":           "ssh://example.com/a/b.git",
		"git@[2001:db8::1]:a":               "ssh://2001:db8::1/a",
		"http://example.com/a":              "plainHTTP",
		"file:///etc":                       "not a repository's address",
		"file://host/etc":                   "file, which is not supported",
		"/etc/charts":                       "not a repository's address",
		"../charts":                         "not a repository's address",
		"C:\\charts":                        "not a repository's address",
		"ext::sh -c touch% /tmp/pwned":      "not a repository's address",
		"git://example.com/a":               "git, which is not supported",
		"ftp://example.com/a":               "ftp, which is not supported",
		"https://a:hunter2@example.com/a":   "password",
		"https://example.com":               "names no repository",
		"https://example.com/a?token=x":     "query",
		"ssh://-oProxyCommand=x/a":          "ssh://-oproxycommand=x/a",
		"ssh://-x@example.com/a":            "dash",
		"git@example.com:--upload-pack=x":   "dash",
		"https://example.com/a\nhost: evil": "control character",
	} {
		at, err := parseAddress(text, false)
		got := ""
		if err == nil {
			got = strings.ToLower(at.shown())
		} else {
			got = err.Error()
		}
		if !strings.Contains(got, want) || (err != nil && strings.Contains(got, password)) {
			t.Errorf("%q: %q does not say %q", text, got, want)
		}
	}
}

func TestRedirectsStayAtHome(t *testing.T) {
	r := newRepository(t)
	r.chart("", "1.0.0")
	r.commit("first")
	inner := r.serveHTTPS()
	handler := inner.Config.Handler
	inner.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if rest, ok := strings.CutPrefix(request.URL.Path, "/moved"); ok {
			http.Redirect(w, request, "/charts.git"+rest+"?"+request.URL.RawQuery, http.StatusMovedPermanently)
			return
		}
		handler.ServeHTTP(w, request)
	})
	moved := r.overHTTPS(inner)
	moved.URL = inner.URL + "/moved"
	if _, err := fetch(t, moved); err != nil {
		t.Fatalf("moved at the same host: %v", err)
	}
	away := httptest.NewServer(http.RedirectHandler(inner.URL+"/charts.git/info/refs?service=git-upload-pack", http.StatusFound))
	t.Cleanup(away.Close)
	_, err := fetch(t, Request{URL: away.URL + "/x", PlainHTTP: true, Credentials: moved.Credentials})
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "redirects to "+inner.URL)
}

func TestBothProtocolsAreGuarded(t *testing.T) {
	guard, err := egress.New(egress.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	key, private := newKey(t)
	credentials := Credentials{PrivateKey: private, KnownHosts: []byte(knownhosts.Line([]string{"x"}, key.PublicKey()))}
	for _, url := range []string{"https://127.0.0.1/x", "ssh://127.0.0.1/x", "ssh://169.254.169.254/x", "git@localhost:x"} {
		_, err := New(guard, t.TempDir(), Limits{}).Fetch(context.Background(), Request{URL: url, Credentials: credentials})
		wantFault(t, err, enginev1.Fault_INVALID, "is refused")
	}
}

// lock puts a passphrase on a key.
func lock(t *testing.T, key []byte) []byte {
	t.Helper()
	parsed, err := ssh.ParseRawPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(parsed, "", []byte(password))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block)
}
