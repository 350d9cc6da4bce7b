package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

type file struct {
	name, body string
	kind       byte
	link       string
}

// pack makes an archive of whatever files, good or bad.
func pack(t *testing.T, files ...file) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, f := range files {
		kind := f.kind
		if kind == 0 {
			kind = tar.TypeReg
		}
		if err := w.WriteHeader(&tar.Header{Name: f.name, Typeflag: kind, Linkname: f.link, Mode: 0o644, Size: int64(len(f.body)), ModTime: time.Unix(0, 0)}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func small(t *testing.T, version string, more ...file) []byte {
	return pack(t, append([]file{
		{name: "small/Chart.yaml", body: "apiVersion: v2\nname: small\nversion: " + version + "\n"},
		{name: "small/values.yaml", body: "message: hello\nsub: {enabled: true}\n"},
		{name: "small/templates/a.yaml", body: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {m: {{ .Values.message | quote }}}\n"},
	}, more...)...)
}

func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := New(Options{Dir: filepath.Join(t.TempDir(), "charts"), Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// repository serves an index and archives, and counts what it was asked for.
type repository struct {
	*httptest.Server
	mutex    sync.Mutex
	charts   map[string][]byte // by version
	asked    map[string]int
	headers  []http.Header
	user     string
	absolute string
	down     atomic.Bool
}

func newRepository(t *testing.T, versions ...string) *repository {
	t.Helper()
	r := &repository{charts: map[string][]byte{}, asked: map[string]int{}}
	for _, v := range versions {
		r.charts[v] = small(t, v)
	}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *repository) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.asked[request.URL.Path]++
	r.headers = append(r.headers, request.Header.Clone())
	if r.down.Load() {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	if user, _, _ := request.BasicAuth(); r.user != "" && user != r.user {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	if request.URL.Path == "/index.yaml" {
		body := "apiVersion: v1\nentries:\n  small:\n"
		for v, packed := range r.charts {
			body += fmt.Sprintf("  - {name: small, version: %q, digest: %q, urls: [%ssmall-%s.tgz]}\n",
				v, strings.TrimPrefix(digestOf(packed), "sha256:"), r.absolute, v)
		}
		tag := `"` + digestOf([]byte(fmt.Sprint(len(r.charts), len(r.charts["1.0.0"])))) + `"`
		w.Header().Set("ETag", tag)
		if request.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write([]byte(body))
		return
	}
	version := strings.TrimSuffix(strings.TrimPrefix(request.URL.Path, "/small-"), ".tgz")
	packed, ok := r.charts[version]
	if !ok {
		http.NotFound(w, request)
		return
	}
	_, _ = w.Write(packed)
}

func (r *repository) count(path string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.asked[path]
}

func (r *repository) source(version string) *enginev1.ChartSource {
	return &enginev1.ChartSource{Repository: r.URL, Name: "small", Version: version}
}

func wantFault(t *testing.T, err error, kind enginev1.Fault_Kind, words ...string) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Fatalf("got %v, want %s", err, kind)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

func TestVersions(t *testing.T) {
	have := []string{"1.0.0", "2.0.0-rc.1", "v1.2.0", "1.1.0", "0.9.0+build.2", "odd"}
	for _, row := range []struct{ wanted, got string }{
		{"1.0.0", "1.0.0"}, {"v1.0.0", "1.0.0"}, {"1.2.0", "v1.2.0"}, {"", "v1.2.0"}, {"^1", "v1.2.0"},
		{"~1.1", "1.1.0"}, {"1.1", "1.1.0"}, {">=2.0.0-0", "2.0.0-rc.1"}, {"odd", "odd"}, {"0.9.0+build.2", "0.9.0+build.2"},
		{"0.9.0", "0.9.0+build.2"}, {"v0.9.0", "0.9.0+build.2"}, {"0.9.0+build.3", ""},
		{"3.0.0", ""}, {"nonsense", ""}, {"1.0.1", ""},
	} {
		got := ""
		if at := pick(have, row.wanted); at >= 0 {
			got = have[at]
		}
		if got != row.got {
			t.Errorf("%q: got %q, want %q", row.wanted, got, row.got)
		}
	}
	if at := pick([]string{"1.0.0-beta"}, ""); at != 0 {
		t.Error("only pre-releases: the latest of them")
	}
}

func TestFiftyResolvesAreOneDownload(t *testing.T) {
	s, r := newStore(t), newRepository(t, "1.0.0", "1.2.0")
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if info, err := s.Resolve(context.Background(), r.source("v1.2.0")); err != nil || info.Version != "1.2.0" {
				t.Errorf("%v %v", info, err)
			}
		})
	}
	all.Wait()
	if r.count("/index.yaml") != 1 || r.count("/small-1.2.0.tgz") != 1 {
		t.Errorf("asked %v", r.asked)
	}
	if _, err := s.Resolve(context.Background(), r.source("1.0.0")); err != nil {
		t.Fatal(err)
	}
	if r.count("/index.yaml") != 1 {
		t.Error("a fresh index that has the version was fetched again")
	}
	r.down.Store(true)
	if _, err := s.Resolve(context.Background(), r.source("1.0.0")); err != nil {
		t.Error("what was resolved once needs no repository:", err)
	}
}

func TestNewVersionAppears(t *testing.T) {
	s, r := newStore(t), newRepository(t, "1.0.0")
	_, err := s.Resolve(context.Background(), r.source("9.9.9"))
	wantFault(t, err, enginev1.Fault_CHART_NOT_FOUND, `chart "small" has no version 9.9.9 in`, "newest is 1.0.0")
	r.mutex.Lock()
	r.charts["9.9.9"] = small(t, "9.9.9")
	r.mutex.Unlock()
	if _, err := s.Resolve(context.Background(), r.source("9.9.9")); err != nil {
		t.Fatal(err)
	}
}

func TestFaults(t *testing.T) {
	s, r := newStore(t), newRepository(t, "1.0.0")
	ctx := context.Background()
	_, err := s.Resolve(ctx, &enginev1.ChartSource{Repository: r.URL, Name: "other"})
	wantFault(t, err, enginev1.Fault_CHART_NOT_FOUND, `no chart "other"`)
	_, err = s.Resolve(ctx, &enginev1.ChartSource{Url: r.URL + "/small-7.tgz"})
	wantFault(t, err, enginev1.Fault_CHART_NOT_FOUND)
	pinned := r.source("1.0.0")
	pinned.Digest = "sha256:" + strings.Repeat("0", 64)
	_, err = s.Resolve(ctx, pinned)
	wantFault(t, err, enginev1.Fault_CHART_INVALID, strings.Repeat("0", 64), digestOf(r.charts["1.0.0"]))
	_, err = s.Resolve(ctx, &enginev1.ChartSource{Url: r.URL + "/index.yaml"})
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "not a chart")
	r.down.Store(true)
	_, err = s.Resolve(ctx, r.source("^1"))
	wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, "503")
	r.Close()
	secret := &enginev1.ChartSource{Repository: strings.Replace(r.URL, "://", "://joe:hunter2@", 1) + "?token=hunter2", Name: "small"}
	_, err = s.Resolve(ctx, secret)
	wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, "does not answer")
	if strings.Contains(err.Error(), "hunter2") {
		t.Error("a credential in a message:", err)
	}
}

func TestCredentialsStayHome(t *testing.T) {
	s, away := newStore(t), newRepository(t, "1.0.0")
	home := newRepository(t, "1.0.0")
	home.user, home.absolute = "joe", away.URL+"/"
	source := home.source("1.0.0")
	_, err := s.Resolve(context.Background(), source)
	wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, "401")
	source.Username, source.Password = "joe", "secret"
	if _, err := s.Resolve(context.Background(), source); err != nil {
		t.Fatal(err)
	}
	for _, header := range away.headers {
		if header.Get("Authorization") != "" {
			t.Error("credentials went to another host")
		}
	}
	redirecting := httptest.NewServer(http.RedirectHandler(away.URL+"/small-1.0.0.tgz", http.StatusFound))
	defer redirecting.Close()
	if _, err := s.Resolve(context.Background(), &enginev1.ChartSource{Url: redirecting.URL + "/c.tgz", Username: "joe", Password: "secret"}); err != nil {
		t.Fatal(err)
	}
	for _, header := range away.headers {
		if header.Get("Authorization") != "" {
			t.Error("credentials followed a redirect to another host")
		}
	}
	_, err = s.Resolve(context.Background(), home.source("1.0.0"))
	wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, "401")
}
