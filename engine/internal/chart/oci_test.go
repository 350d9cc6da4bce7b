package chart

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v4/pkg/registry"

	"github.com/pilothouse-dev/pilothouse/engine/internal/devregistry"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// ociRegistry is a real registry; what it is asked goes through front first.
type ociRegistry struct {
	*httptest.Server
	front func(http.ResponseWriter, *http.Request) bool // true: answered
	mutex sync.Mutex
	asked []string
}

func newRegistry(t *testing.T, user string, secure bool) *ociRegistry {
	t.Helper()
	inside, err := devregistry.New(context.Background(), t.TempDir(), user, "secret")
	if err != nil {
		t.Fatal(err)
	}
	r := &ociRegistry{}
	handler := http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mutex.Lock()
		r.asked = append(r.asked, request.Method+" "+request.URL.Path)
		front := r.front
		r.mutex.Unlock()
		if front == nil || !front(w, request) {
			inside.ServeHTTP(w, request)
		}
	})
	if secure {
		r.Server = httptest.NewTLSServer(handler)
	} else {
		r.Server = httptest.NewServer(handler)
	}
	t.Cleanup(r.Close)
	return r
}

// push uploads with Helm's own client and returns the digests of manifest and layer.
func (r *ociRegistry) push(t *testing.T, user string, packed []byte, tag string) (string, string) {
	t.Helper()
	options := []registry.ClientOption{registry.ClientOptHTTPClient(r.Client()), registry.ClientOptBasicAuth(user, "secret")}
	if r.TLS == nil {
		options = append(options, registry.ClientOptPlainHTTP())
	}
	client, err := registry.NewClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	done, err := client.Push(packed, r.host()+"/charts/small:"+tag, registry.PushOptStrictMode(false))
	if err != nil {
		t.Fatal(err)
	}
	return done.Manifest.Digest, done.Chart.Digest
}

func (r *ociRegistry) host() string { return r.Listener.Addr().String() }

func (r *ociRegistry) count(words ...string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	n := 0
	for _, asked := range r.asked {
		all := true
		for _, word := range words {
			all = all && strings.Contains(asked, word)
		}
		if all {
			n++
		}
	}
	return n
}

func (r *ociRegistry) source(version string) *enginev1.ChartSource {
	return &enginev1.ChartSource{
		Repository: "oci://" + r.host() + "/charts", Name: "small", Version: version, PlainHttp: r.TLS == nil,
	}
}

func TestRegistryVersions(t *testing.T) {
	s, r := newStore(t), newRegistry(t, "", false)
	for _, v := range []string{"1.0.0", "1.2.0+build.1", "2.0.0-rc.1"} {
		r.push(t, "", small(t, v), v)
	}
	ctx := context.Background()
	for wanted, got := range map[string]string{
		"v1.0.0": "1.0.0", "1.0.0": "1.0.0", "": "1.2.0+build.1", "^1": "1.2.0+build.1",
		"1.2.0+build.1": "1.2.0+build.1", "1.2.0": "1.2.0+build.1", ">=2.0.0-0": "2.0.0-rc.1",
	} {
		if info, err := s.Resolve(ctx, r.source(wanted)); err != nil || info.Version != got {
			t.Errorf("%q: %v %v", wanted, info, err)
		}
	}
	if n := r.count("GET", "/blobs/", digestOf(small(t, "1.2.0+build.1"))); n != 1 {
		t.Errorf("the same chart under four names was downloaded %d times", n)
	}
	r.asked = nil
	if _, err := s.Resolve(ctx, r.source("1.0.0")); err != nil || len(r.asked) != 0 {
		t.Errorf("asked %v: %v", r.asked, err)
	}
	_, err := s.Resolve(ctx, r.source("9.9.9"))
	wantFault(t, err, enginev1.Fault_CHART_NOT_FOUND, `chart "small" has no version 9.9.9`, "newest is 1.2.0+build.1")
	other := r.source("1.0.0")
	other.Name = "other"
	_, err = s.Resolve(ctx, other)
	wantFault(t, err, enginev1.Fault_CHART_NOT_FOUND)
	r.Close()
	_, err = s.Resolve(ctx, r.source("~1"))
	wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, "does not answer")
}

func TestEveryFormOfReference(t *testing.T) {
	r := newRegistry(t, "", false)
	old, oldChart := r.push(t, "", small(t, "1.0.0"), "1.0.0")
	last, _ := r.push(t, "", small(t, "1.1.0"), "1.1.0")
	r.push(t, "", small(t, "1.2.0"), "1.2.0")
	base := "oci://" + r.host() + "/charts/small"
	none := "sha256:" + strings.Repeat("1", 64)
	for name, row := range map[string]struct {
		source *enginev1.ChartSource
		got    string
		kind   enginev1.Fault_Kind
		says   string
	}{
		"bare":                              {source: &enginev1.ChartSource{Url: base}, got: "1.2.0"},
		"tag":                               {source: &enginev1.ChartSource{Url: base + ":1.0.0"}, got: "1.0.0"},
		"digest":                            {source: &enginev1.ChartSource{Url: base + "@" + old}, got: "1.0.0"},
		"tag and digest: the digest counts": {source: &enginev1.ChartSource{Url: base + ":1.2.0@" + old}, got: "1.0.0"},
		"bare and pin":                      {source: &enginev1.ChartSource{Url: base, Digest: last}, got: "1.1.0"},
		"tag and pin":                       {source: &enginev1.ChartSource{Url: base + ":1.0.0", Digest: old}, got: "1.0.0"},
		"digest and equal pin":              {source: &enginev1.ChartSource{Url: base + "@" + old, Digest: old}, got: "1.0.0"},
		"digest and other pin":              {source: &enginev1.ChartSource{Url: base + "@" + old, Digest: last}, kind: enginev1.Fault_CHART_INVALID, says: last},
		"tag and pin of the packed chart":   {source: &enginev1.ChartSource{Url: base + ":1.0.0", Digest: oldChart}, got: "1.0.0"},
		"repository and pin, no version":    {source: &enginev1.ChartSource{Repository: "oci://" + r.host() + "/charts/", Name: "small", Digest: old}, got: "1.0.0"},
		"version and pin":                   {source: &enginev1.ChartSource{Repository: "oci://" + r.host() + "/charts", Name: "small", Version: "1.1.0", Digest: last}, got: "1.1.0"},
		"pin that is nowhere":               {source: &enginev1.ChartSource{Url: base + ":1.0.0", Digest: none}, kind: enginev1.Fault_CHART_INVALID, says: oldChart},
		"digest that is nowhere":            {source: &enginev1.ChartSource{Url: base + "@" + none}, kind: enginev1.Fault_CHART_NOT_FOUND},
		"tag that is nowhere":               {source: &enginev1.ChartSource{Url: base + ":7"}, kind: enginev1.Fault_CHART_NOT_FOUND},
		"not a digest":                      {source: &enginev1.ChartSource{Url: base + "@sha256:7"}, kind: enginev1.Fault_CHART_INVALID, says: "sha256"},
	} {
		t.Run(name, func(t *testing.T) {
			row.source.PlainHttp = true
			info, err := newStore(t).Resolve(context.Background(), row.source)
			if row.got == "" {
				wantFault(t, err, row.kind, row.says)
			} else if err != nil || info.Version != row.got {
				t.Errorf("%v %v", info, err)
			}
		})
	}
}

func TestRegistryCredentials(t *testing.T) {
	r := newRegistry(t, "joe", true)
	packed := small(t, "1.0.0")
	r.push(t, "joe", packed, "1.0.0")
	trusted := r.source("1.0.0")
	trusted.CaBundle = certificateOf(r.Server)
	for name, row := range map[string]struct {
		change func(*enginev1.ChartSource)
		says   string // empty: it works
	}{
		"basic":         {change: func(c *enginev1.ChartSource) { c.Username, c.Password = "joe", "secret" }},
		"docker config": {change: func(c *enginev1.ChartSource) { c.DockerConfig = dockerConfig(r.host(), "joe", "secret") }},
		"docker config, a path": {change: func(c *enginev1.ChartSource) {
			c.DockerConfig = dockerConfig("https://"+r.host()+"/charts", "joe", "secret")
		}},
		"docker config, another": {change: func(c *enginev1.ChartSource) { c.DockerConfig = dockerConfig("registry.example", "joe", "secret") }, says: "credentials"},
		"none":                   {change: func(*enginev1.ChartSource) {}, says: "wants credentials, and none were given"},
		"wrong":                  {change: func(c *enginev1.ChartSource) { c.Username, c.Password = "joe", "hunter2" }, says: "refused the credentials (HTTP 401)"},
		"not trusted": {change: func(c *enginev1.ChartSource) {
			c.Username, c.Password, c.CaBundle = "joe", "secret", nil
		}, says: "certificate"},
		"not verified": {change: func(c *enginev1.ChartSource) {
			c.Username, c.Password, c.CaBundle, c.InsecureSkipTlsVerify = "joe", "secret", nil, true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			source := tidy(trusted)
			row.change(source)
			info, err := newStore(t).Resolve(context.Background(), source)
			if row.says == "" {
				if err != nil || info.Digest != digestOf(packed) {
					t.Errorf("%v %v", info, err)
				}
				return
			}
			wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, row.says)
			if strings.Contains(err.Error(), "hunter2") {
				t.Error("a password in a message:", err)
			}
		})
	}
}

func TestRegistryBearerAndRedirect(t *testing.T) {
	r := newRegistry(t, "", false)
	packed := small(t, "1.0.0")
	r.push(t, "", packed, "1.0.0")
	var leaked []string
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		leaked = append(leaked, request.Header.Get("Authorization"))
		_, _ = w.Write(packed)
	}))
	defer away.Close()
	r.mutex.Lock()
	r.front = func(w http.ResponseWriter, request *http.Request) bool {
		if request.Header.Get("Authorization") != "Bearer t0ken" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.host()+`/token",service="charts"`)
			http.Error(w, "no", http.StatusUnauthorized)
			return true
		}
		if strings.Contains(request.URL.Path, "/blobs/") {
			http.Redirect(w, request, away.URL, http.StatusTemporaryRedirect)
			return true
		}
		return false
	}
	r.mutex.Unlock()
	source := r.source("1.0.0")
	source.BearerToken = "t0ken"
	if _, err := newStore(t).Resolve(context.Background(), source); err != nil {
		t.Fatal(err)
	}
	if len(leaked) != 1 || leaked[0] != "" {
		t.Errorf("another host was told %q", leaked)
	}
}

func TestFiftyPullsAreOneDownload(t *testing.T) {
	s, r := newStore(t), newRegistry(t, "", false)
	packed := small(t, "1.0.0")
	r.push(t, "", packed, "1.0.0")
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := s.Resolve(context.Background(), r.source("1.0.0")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := r.count("GET", "/blobs/"); n != 1 {
		t.Errorf("%d downloads", n)
	}
}
