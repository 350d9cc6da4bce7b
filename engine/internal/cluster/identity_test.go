package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const upbound = "UpboundTokens"

// scene is an API server that wants a bearer token, and a token service that gives t1, t2, ...
type scene struct {
	registry *Registry
	api      *httptest.Server

	mu      sync.Mutex
	refuse  func(token string) bool // what the API server says 401 to
	status  int                     // what the token service answers
	given   int
	bodies  []string
	headers []http.Header
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{registry: NewRegistry(), status: http.StatusOK, refuse: func(string) bool { return false }}
	service := httptest.NewServer(http.HandlerFunc(s.serveToken))
	s.api = httptest.NewTLSServer(http.HandlerFunc(s.serveAPI))
	t.Cleanup(service.Close)
	t.Cleanup(s.api.Close)
	to, _ := url.Parse(service.URL)
	s.registry.TokenClient = &http.Client{Transport: detour{to}}
	return s
}

// detour sends every question to the local token service.
type detour struct{ to *url.URL }

func (d detour) RoundTrip(request *http.Request) (*http.Response, error) {
	moved := request.Clone(request.Context())
	moved.URL.Scheme, moved.URL.Host = d.to.Scheme, d.to.Host
	return http.DefaultTransport.RoundTrip(moved)
}

func (s *scene) serveToken(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given++
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(s.status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": fmt.Sprintf("t%d", s.given), "expires_in": 3600, "error": "access_denied", "error_description": sentinel,
	})
}

func (s *scene) serveAPI(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, string(body))
	s.headers = append(s.headers, r.Header)
	w.Header().Set("Content-Type", "application/json")
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || s.refuse(token) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`))
		return
	}
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = w.Write([]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n"}}`))
}

// file is a kubeconfig for the API server with these lines in its user.
func (s *scene) file(user string) []byte {
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.api.Certificate().Raw}))
	made := kubeconfig("certificate-authority-data: "+authority, user)
	return []byte(strings.Replace(made, "https://127.0.0.1:6443", s.api.URL, 1))
}

const upExec = "exec: {apiVersion: client.authentication.k8s.io/v1, command: up, args: [org, token, acme], interactiveMode: Never}"

func (s *scene) request(user string) *enginev1.ConnectRequest {
	return &enginev1.ConnectRequest{
		Credentials: &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: s.file(user)},
		Identity:    &enginev1.Identity{Type: upbound, Credentials: []byte("robot")},
	}
}

func (s *scene) connect(t *testing.T, request *enginev1.ConnectRequest) *Cluster {
	t.Helper()
	made, err := s.registry.Connect(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func read(at *Cluster) error {
	_, err := at.Clientset().CoreV1().Namespaces().Get(context.Background(), "n", metav1.GetOptions{})
	return err
}

func TestIdentityTokenOnEveryRequest(t *testing.T) {
	s := newScene(t)
	at := s.connect(t, s.request(upExec))
	if s.given != 0 {
		t.Fatal("connecting asks for nothing")
	}
	for range 3 {
		if err := read(at); err != nil {
			t.Fatal(err)
		}
	}
	if s.given != 1 {
		t.Fatalf("asked for %d tokens", s.given)
	}
	for _, header := range s.headers {
		if header.Get("Authorization") != "Bearer t1" {
			t.Fatalf("sent %q: the kubeconfig's own token must not be", header.Get("Authorization"))
		}
	}
	if at.Config().BearerToken != "" {
		t.Fatal("a config carries no secret")
	}
}

func TestIdentityRefusedTokenIsReplacedOnce(t *testing.T) {
	s := newScene(t)
	at := s.connect(t, s.request(upExec))
	if err := read(at); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.refuse, s.bodies = func(token string) bool { return token == "t1" }, nil
	s.mu.Unlock()
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	if _, err := at.Clientset().CoreV1().Namespaces().Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(s.bodies) != 2 || s.bodies[0] != s.bodies[1] || s.bodies[0] == "" || s.given != 2 {
		t.Fatalf("%d requests with %d tokens", len(s.bodies), s.given)
	}
}

func TestIdentityUnknownToTheClusterMakesNoStorm(t *testing.T) {
	s := newScene(t)
	s.refuse = func(string) bool { return true }
	at := s.connect(t, s.request(upExec))
	for range 5 {
		if err := fault.From(read(at)); err == nil || err.Kind != enginev1.Fault_UNAUTHORIZED || err.HTTPStatus != http.StatusUnauthorized {
			t.Fatalf("got %v", err)
		}
	}
	if s.given != 2 {
		t.Fatalf("asked for %d tokens", s.given)
	}
}

func TestIdentityTokenServiceFails(t *testing.T) {
	for status, kind := range map[int]fault.Kind{
		http.StatusForbidden:  enginev1.Fault_UNAUTHORIZED,
		http.StatusBadGateway: enginev1.Fault_UNREACHABLE,
	} {
		s := newScene(t)
		s.status = status
		err := fault.From(read(s.connect(t, s.request(upExec))))
		if err == nil || err.Kind != kind || !strings.Contains(err.Message, "the token service of the identity "+upbound) ||
			!strings.Contains(err.Message, fmt.Sprintf("HTTP %d access_denied", status)) || strings.Contains(err.Message, sentinel) {
			t.Fatalf("got %v", err)
		}
		if len(s.headers) != 0 {
			t.Fatal("the API server was asked without a token")
		}
	}
}

func TestIdentityNeverRunsThePlugin(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		s := newScene(t)
		marker := filepath.Join(t.TempDir(), "ran")
		request := s.request("exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [" + marker + "], interactiveMode: Never}")
		request.Identity = &enginev1.Identity{Type: "GoogleApplicationCredentials", Credentials: []byte("ya29.raw")}
		request.Trusted = trusted
		if err := read(s.connect(t, request)); err != nil {
			t.Fatal(err)
		}
		if got := s.headers[0].Get("Authorization"); got != "Bearer ya29.raw" {
			t.Fatalf("sent %q", got)
		}
		if _, err := os.Stat(marker); !os.IsNotExist(err) {
			t.Fatal("the kubeconfig's program was run")
		}
	}
}

func TestIdentityStandsInForEveryLogin(t *testing.T) {
	certificate, key := pair(t)
	for rule, user := range map[string]string{
		"auth-provider":      "auth-provider: {name: gcp}",
		"token file":         "tokenFile: /etc/passwd",
		"basic":              "username: u\npassword: p",
		"client certificate": "client-certificate-data: " + certificate + "\nclient-key-data: " + key,
		"as":                 "as: jane",
	} {
		t.Run(rule, func(t *testing.T) {
			s := newScene(t)
			request := s.request(user)
			request.Identity = &enginev1.Identity{Type: "GoogleApplicationCredentials", Credentials: []byte("ya29.raw")}
			if err := read(s.connect(t, request)); err != nil {
				t.Fatal(err)
			}
			if got := s.headers[0]; got.Get("Authorization") != "Bearer ya29.raw" || rule == "as" && got.Get("Impersonate-User") != "jane" {
				t.Fatalf("sent %v", got)
			}
		})
	}
	t.Run("a user that is not there", func(t *testing.T) {
		s := newScene(t)
		request := s.request("")
		request.Credentials = &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: []byte(strings.Replace(string(s.file("")), "user: me}", "user: nobody}", 1))}
		request.Identity = &enginev1.Identity{Type: "GoogleApplicationCredentials", Credentials: []byte("ya29.raw")}
		if err := read(s.connect(t, request)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestIdentityRefused(t *testing.T) {
	s := newScene(t)
	for _, row := range []struct {
		rule string
		edit func(*enginev1.ConnectRequest)
		want string
	}{
		{"unknown", func(r *enginev1.ConnectRequest) { r.Identity.Type = "Kerberos" },
			"the identity type is not known: use one of AWSWebIdentityCredentials, Azure"},
		{"no type", func(r *enginev1.ConnectRequest) { r.Identity = &enginev1.Identity{} }, "the identity type is not known"},
		{"injected", func(r *enginev1.ConnectRequest) { r.Identity.Injected = true }, "UpboundTokens cannot use InjectedIdentity"},
		{"bad JSON", func(r *enginev1.ConnectRequest) {
			r.Identity = &enginev1.Identity{Type: "NebiusServiceAccountCredentials", Credentials: []byte("{" + sentinel)}
		}, "the identity NebiusServiceAccountCredentials has credentials that are not the JSON object it needs"},
		{"a file", func(r *enginev1.ConnectRequest) {
			r.Credentials = &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: s.file("client-certificate: /etc/passwd\n" + upExec)}
		}, "client-certificate,"},
		{"masters", func(r *enginev1.ConnectRequest) {
			r.Credentials = &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: s.file("as: x\nas-groups: ['system:masters']\n" + upExec)}
		}, "system:masters"},
		{"no such context", func(r *enginev1.ConnectRequest) { r.Context = "elsewhere" }, "does not have the context"},
	} {
		t.Run(row.rule, func(t *testing.T) {
			request := s.request(upExec)
			row.edit(request)
			_, err := s.registry.Connect(t.Context(), request)
			if !fault.Is(err, enginev1.Fault_INVALID) || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), sentinel) {
				t.Fatalf("got %v, want a refusal with %q", err, row.want)
			}
		})
	}
}

func TestIdentityIsPartOfTheHandle(t *testing.T) {
	s := newScene(t)
	connect := func(credentials, user string) *Cluster {
		request := s.request(upExec)
		request.Identity.Credentials = []byte(credentials)
		if user != "" {
			request.Impersonate = &enginev1.Impersonation{User: user}
		}
		return s.connect(t, request)
	}
	one, again, other, jane := connect("robot", ""), connect("robot", ""), connect("rotated", ""), connect("robot", "jane")
	if one != again || one.ID == other.ID || one.connection == other.connection {
		t.Fatal("a handle is for credentials and identity")
	}
	if one.connection != jane.connection {
		t.Fatal("who acts as somebody shares the connection, and its tokens")
	}
	if err := read(jane); err != nil {
		t.Fatal(err)
	}
	if got := s.headers[0]; got.Get("Authorization") != "Bearer t1" || got.Get("Impersonate-User") != "jane" {
		t.Fatalf("sent %v", got)
	}
}
