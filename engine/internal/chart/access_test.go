package chart

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

func certificateOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func dockerConfig(host, user, password string) []byte {
	encoded, _ := json.Marshal(map[string]any{"auths": map[string]any{
		host: map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(user + ":" + password))},
	}})
	return encoded
}

// secureRepository serves charts over TLS to who says the right thing.
func secureRepository(t *testing.T, authorization string, settings *tls.Config) *repository {
	t.Helper()
	r := newRepository(t, "1.0.0")
	plain := r.Server
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if authorization != "" && request.Header.Get("Authorization") != authorization {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		r.ServeHTTP(w, request)
	}))
	plain.Close()
	r.TLS = settings
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func TestRepositoryCredentials(t *testing.T) {
	for name, row := range map[string]struct {
		wants  string
		change func(*enginev1.ChartSource, *repository)
		says   string
	}{
		"basic": {wants: basic("joe", "secret"), change: func(c *enginev1.ChartSource, _ *repository) {
			c.Username, c.Password = "joe", "secret"
		}},
		"bearer": {wants: "Bearer t0ken", change: func(c *enginev1.ChartSource, _ *repository) { c.BearerToken = "t0ken" }},
		"docker config": {wants: basic("joe", "secret"), change: func(c *enginev1.ChartSource, r *repository) {
			c.DockerConfig = dockerConfig(r.Listener.Addr().String(), "joe", "secret")
		}},
		"in the URL": {wants: basic("joe", "secret"), change: func(c *enginev1.ChartSource, r *repository) {
			c.Repository = strings.Replace(r.URL, "://", "://joe:secret@", 1)
		}},
		"none":             {wants: basic("joe", "secret"), change: func(*enginev1.ChartSource, *repository) {}, says: "refused the credentials (HTTP 401)"},
		"not trusted":      {change: func(c *enginev1.ChartSource, _ *repository) { c.CaBundle = nil }, says: "certificate"},
		"not verified":     {change: func(c *enginev1.ChartSource, _ *repository) { c.CaBundle, c.InsecureSkipTlsVerify = nil, true }},
		"no certificate":   {change: func(c *enginev1.ChartSource, _ *repository) { c.CaBundle = []byte("hello") }, says: "caBundle holds no PEM certificate"},
		"no docker config": {change: func(c *enginev1.ChartSource, _ *repository) { c.DockerConfig = []byte("hunter2") }, says: "is not a docker config"},
		"no key pair": {change: func(c *enginev1.ChartSource, _ *repository) {
			c.ClientCertificate, c.ClientKey = []byte("x"), []byte("hunter2")
		}, says: "tls.crt and tls.key"},
	} {
		t.Run(name, func(t *testing.T) {
			r := secureRepository(t, row.wants, nil)
			source := r.source("1.0.0")
			source.CaBundle = certificateOf(r.Server)
			row.change(source, r)
			_, err := newStore(t).Resolve(context.Background(), source)
			if row.says == "" && err != nil {
				t.Error(err)
			}
			if row.says != "" && (err == nil || !strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("%v does not say %q", err, row.says)
			}
		})
	}
}

func TestClientCertificate(t *testing.T) {
	// Any pair will do for a client: httptest's own.
	lender := httptest.NewTLSServer(nil)
	defer lender.Close()
	pair := lender.TLS.Certificates[0]
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8(t, pair)})
	shown := 0
	away := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		shown += len(request.TLS.PeerCertificates)
		_, _ = w.Write(small(t, "1.0.0"))
	}))
	away.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	away.StartTLS()
	defer away.Close()
	r := secureRepository(t, "", &tls.Config{ClientAuth: tls.RequireAnyClientCert})
	source := r.source("1.0.0")
	source.InsecureSkipTlsVerify = true
	_, err := newStore(t).Resolve(context.Background(), source)
	wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE)
	source.ClientCertificate, source.ClientKey = certificateOf(lender), key
	if _, err := newStore(t).Resolve(context.Background(), source); err != nil {
		t.Fatal(err)
	}
	r.absolute = away.URL + "/"
	if _, err := newStore(t).Resolve(context.Background(), source); err != nil {
		t.Fatal(err)
	}
	if shown != 0 {
		t.Error("the client certificate was shown to another host")
	}
}

func TestRedirectsCarryNothingAway(t *testing.T) {
	packed := small(t, "1.0.0")
	var told []http.Header
	keep := http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		told = append(told, request.Header.Clone())
		_, _ = w.Write(packed)
	})
	plain, secure := httptest.NewServer(keep), httptest.NewTLSServer(keep)
	defer plain.Close()
	defer secure.Close()
	for name, target := range map[string]string{"another port": secure.URL, "without TLS": plain.URL} {
		t.Run(name, func(t *testing.T) {
			told = nil
			home := httptest.NewTLSServer(http.RedirectHandler(target+"/small-1.0.0.tgz", http.StatusFound))
			defer home.Close()
			for _, source := range []*enginev1.ChartSource{
				{Username: "joe", Password: "secret"},
				{BearerToken: "t0ken"},
				{DockerConfig: dockerConfig(strings.TrimPrefix(home.URL, "https://"), "joe", "secret")},
			} {
				source.Url, source.InsecureSkipTlsVerify = home.URL+"/c.tgz?token=secret", true
				if _, err := newStore(t).Resolve(context.Background(), source); err != nil {
					t.Fatal(err)
				}
			}
			for _, header := range told {
				if header.Get("Authorization") != "" || header.Get("Referer") != "" {
					t.Errorf("told %v", header)
				}
			}
			if len(told) != 3 {
				t.Errorf("asked %d times", len(told))
			}
		})
	}
}

func TestDockerConfigHosts(t *testing.T) {
	for _, row := range []struct {
		entry, address string
		fits           bool
	}{
		{"registry.example", "oci://registry.example/charts", true},
		{"https://registry.example/v2/", "oci://registry.example/charts", true},
		{"registry.example:5000", "oci://registry.example/charts", false},
		{"registry.example:5000", "oci://registry.example:5000/charts", true},
		{"*.example", "oci://registry.example/charts", true},
		{"*.example", "oci://a.registry.example/charts", false},
		{"registry.example/team", "oci://registry.example/team/charts", true},
		{"registry.example/team", "oci://registry.example/teams", false},
		{"https://index.docker.io/v1/", "oci://registry-1.docker.io/library", true},
		{"registry.example", "oci://registry.example.evil", false},
	} {
		target, _ := url.Parse(row.address)
		found, err := fromDockerConfig(dockerConfig(row.entry, "joe", "se:cret"), target.Host, target.Path)
		if err != nil || (found.username == "joe" && found.password == "se:cret") != row.fits {
			t.Errorf("%s for %s: %v %v", row.entry, row.address, found.username, err)
		}
	}
	both := []byte(`{"auths": {"registry.example": {"username": "all"}, "registry.example/team": {"username": "team", "password": "x"}}}`)
	if found, _ := fromDockerConfig(both, "registry.example", "/team/charts"); found.username != "team" {
		t.Error("the longer entry counts")
	}
}

func pkcs8(t *testing.T, pair tls.Certificate) []byte {
	t.Helper()
	encoded, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
