package chart

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

func TestAnIndexMayPointToARegistry(t *testing.T) {
	for name, row := range map[string]struct {
		user  string // whom the registry wants
		login func(*enginev1.ChartSource, string)
		says  string
	}{
		"anyone":                  {login: func(c *enginev1.ChartSource, _ string) { c.Username, c.Password = "joe", "secret" }},
		"not with the index's":    {user: "joe", login: func(c *enginev1.ChartSource, _ string) { c.Username, c.Password = "joe", "secret" }, says: "credentials"},
		"a docker config says so": {user: "joe", login: func(c *enginev1.ChartSource, host string) { c.DockerConfig = dockerConfig(host, "joe", "secret") }},
	} {
		t.Run(name, func(t *testing.T) {
			registry, r := newRegistry(t, row.user, false), newRepository(t, "1.0.0")
			registry.push(t, row.user, r.charts["1.0.0"], "1.0.0")
			home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, "apiVersion: v1\nentries:\n  small:\n  - {version: 1.0.0, urls: ['oci://%s/charts/small:1.0.0']}\n", registry.host())
			}))
			defer home.Close()
			var told []string
			registry.mutex.Lock()
			registry.front = func(_ http.ResponseWriter, request *http.Request) bool {
				told = append(told, request.Header.Get("Authorization"))
				return false
			}
			registry.mutex.Unlock()
			source := &enginev1.ChartSource{Repository: home.URL, Name: "small", Version: "1.0.0", PlainHttp: true}
			row.login(source, registry.host())
			info, err := newStore(t).Resolve(context.Background(), source)
			if row.says != "" {
				wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, row.says)
			} else if err != nil || info.Digest != digestOf(r.charts["1.0.0"]) {
				t.Fatalf("%v %v", info, err)
			}
			if len(source.GetDockerConfig()) == 0 && strings.Join(told, "") != "" {
				t.Errorf("the registry was told %q", told)
			}
		})
	}
}

// Wherever a redirect comes from, it leads nobody to a metadata service.
func TestRedirectsToWhereNobodyMayGo(t *testing.T) {
	guard, err := egress.New(egress.Policy{Allow: []string{"127.0.0.1:*"}})
	if err != nil {
		t.Fatal(err)
	}
	const away = "http://169.254.169.254/latest/meta-data/"
	registry, r := newRegistry(t, "", false), newRepository(t, "1.0.0")
	registry.push(t, "", r.charts["1.0.0"], "1.0.0")
	redirecting := func(part string) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if strings.Contains(request.URL.Path, part) {
				http.Redirect(w, request, away, http.StatusFound)
				return
			}
			r.ServeHTTP(w, request)
		}))
		t.Cleanup(server.Close)
		return server
	}
	for name, source := range map[string]*enginev1.ChartSource{
		"a URL":         {Url: redirecting(".tgz").URL + "/c.tgz"},
		"an index":      {Repository: redirecting("index").URL, Name: "small"},
		"its chart":     {Repository: redirecting(".tgz").URL, Name: "small"},
		"/tags/list":    {Repository: "oci://" + registry.host() + "/charts", Name: "small", PlainHttp: true},
		"/manifests/":   registry.source("1.0.0"),
		"/blobs/sha256": registry.source("1.0.0"),
	} {
		t.Run(name, func(t *testing.T) {
			registry.mutex.Lock()
			registry.front = func(w http.ResponseWriter, request *http.Request) bool {
				if !strings.HasPrefix(name, "/") || !strings.Contains(request.URL.Path, name) {
					return false
				}
				http.Redirect(w, request, away, http.StatusTemporaryRedirect)
				return true
			}
			registry.mutex.Unlock()
			s, err := New(Options{Dir: t.TempDir(), DialContext: guard.DialContext})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Resolve(context.Background(), source)
			wantFault(t, err, enginev1.Fault_INVALID, "169.254.169.254", "never allowed")
			if !errors.Is(err, egress.ErrRefused) {
				t.Error(err)
			}
		})
	}
}

// A connection that ends too early leaves nothing behind; the next try is a new one.
func TestCutOffDownloads(t *testing.T) {
	r := newRepository(t, "1.0.0")
	cut := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if cut == "" || !strings.HasSuffix(request.URL.Path, cut) {
			r.ServeHTTP(w, request)
			return
		}
		whole := httptest.NewRecorder()
		r.ServeHTTP(whole, request)
		w.Header().Set("Content-Length", fmt.Sprint(whole.Body.Len()))
		_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
	}))
	defer server.Close()
	source := &enginev1.ChartSource{Repository: server.URL, Name: "small", Version: "1.0.0"}
	for _, cut = range []string{"index.yaml", ".tgz"} {
		s := newStore(t)
		_, err := s.Resolve(context.Background(), source)
		wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, "broke off")
		if left, _ := os.ReadDir(s.options.Dir); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
		was := cut
		cut = ""
		if _, err := s.Resolve(context.Background(), source); err != nil {
			t.Errorf("after %s: %v", was, err)
		}
	}
}

func TestRegistryClientCertificate(t *testing.T) {
	lender := httptest.NewTLSServer(nil)
	defer lender.Close()
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8(t, lender.TLS.Certificates[0])})
	open := newRegistry(t, "", false)
	packed := small(t, "1.0.0")
	open.push(t, "", packed, "1.0.0")
	strict := httptest.NewUnstartedServer(open.Config.Handler)
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	strict.StartTLS()
	defer strict.Close()
	source := &enginev1.ChartSource{
		Url: "oci://" + strict.Listener.Addr().String() + "/charts/small:1.0.0", CaBundle: certificateOf(strict),
	}
	_, err := newStore(t).Resolve(context.Background(), source)
	wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, "certificate")
	source.ClientCertificate, source.ClientKey = certificateOf(lender), key
	if info, err := newStore(t).Resolve(context.Background(), source); err != nil || info.Digest != digestOf(packed) {
		t.Fatalf("%v %v", info, err)
	}
}

func TestATagPushedAgain(t *testing.T) {
	r, s, ctx := newRegistry(t, "", false), newStore(t), context.Background()
	manifest, first := r.push(t, "", small(t, "1.0.0"), "1.0.0")
	if _, err := s.Resolve(ctx, r.source("1.0.0")); err != nil {
		t.Fatal(err)
	}
	_, second := r.push(t, "", small(t, "1.0.0", file{name: "small/more", body: "x"}), "1.0.0")
	again, err := New(s.options) // as after a restart
	if err != nil {
		t.Fatal(err)
	}
	held := r.source("1.0.0")
	held.Expected = first
	if info, err := again.Resolve(ctx, held); err != nil || info.Digest != first || info.Republished != second {
		t.Errorf("%v %v", info, err)
	}
	// Pinned, it is what it was, whatever the tag says by now.
	pinned := r.source("")
	pinned.Digest = manifest
	if info, err := newStore(t).Resolve(ctx, pinned); err != nil || info.Digest != first {
		t.Errorf("%v %v", info, err)
	}
}

func TestCredentialsAreNotOnDisk(t *testing.T) {
	r := secureRepository(t, basic("joe", "hunter2"), nil)
	registry := newRegistry(t, "joe", false)
	registry.push(t, "joe", small(t, "1.0.0"), "1.0.0")
	s := newStore(t)
	web := r.source("1.0.0")
	web.CaBundle, web.Username, web.Password = certificateOf(r.Server), "joe", "hunter2"
	oci := registry.source("1.0.0")
	oci.Username, oci.Password = "joe", "secret"
	for _, source := range []*enginev1.ChartSource{web, oci} {
		if _, err := s.Resolve(context.Background(), source); err != nil {
			t.Fatal(err)
		}
	}
	files := 0
	err := filepath.WalkDir(s.options.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		for _, secret := range []string{"hunter2", "secret", basic("joe", "hunter2")[6:]} {
			if strings.Contains(path+string(content), secret) {
				t.Errorf("%q is in %s", secret, path)
			}
		}
		return err
	})
	if err != nil || files != 1 {
		t.Errorf("%d files: %v", files, err)
	}
}

func TestWhatIsReadStays(t *testing.T) {
	dir := t.TempDir()
	first, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var digests []string
	for i := range 3 {
		info, err := first.Put(small(t, fmt.Sprintf("1.0.%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, info.Digest)
		long := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(first.path(info.Digest), long, long); err != nil {
			t.Fatal(err)
		}
	}
	size := int64(len(small(t, "1.0.0")))
	s, err := New(Options{Dir: dir, DiskBytes: 3*size + size/2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(digests[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(small(t, "1.0.9")); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, true} {
		if _, err := os.Stat(s.path(digests[i])); (err == nil) != want {
			t.Errorf("chart %d is there: %v", i, err == nil)
		}
	}
}
