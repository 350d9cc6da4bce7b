package gitsource

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

func noise(t *testing.T, size int) string {
	t.Helper()
	raw := make([]byte, size)
	if _, err := rand.Read(raw); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// Only the chart's files are fetched where the server can filter, and too much is refused where it cannot.
func TestALargeRepository(t *testing.T) {
	r := newRepository(t)
	r.chart("chart", "1.0.0")
	r.write("other/large", noise(t, 3<<20))
	r.commit("first")
	small := newFetcher(t, Limits{Transferred: 1 << 20})
	for name, source := range sources(r) {
		source.Path = "chart"
		r.configure("uploadpack.allowFilter", "false")
		_, err := small.Fetch(context.Background(), source)
		wantFault(t, err, enginev1.Fault_CHART_INVALID, "too large: more than 1 MiB")
		r.configure("uploadpack.allowFilter", "true")
		r.configure("uploadpack.allowAnySHA1InWant", "true")
		if got, err := small.Fetch(context.Background(), source); err != nil || len(got.Chart) == 0 {
			t.Errorf("%s with a filter: %v", name, err)
		}
		// This server filters, but hands out commits only: everything is fetched then.
		r.configure("uploadpack.allowAnySHA1InWant", "false")
		r.configure("uploadpack.allowReachableSHA1InWant", "true")
		if got, err := fetch(t, source); err != nil || len(got.Chart) == 0 {
			t.Errorf("%s with half a filter: %v", name, err)
		}
	}
}

// Zeros take no room in a pack: what counts is what they become.
func TestABomb(t *testing.T) {
	r := newRepository(t)
	r.chart("chart", "1.0.0")
	r.write("zeros", strings.Repeat("\x00", 3<<20))
	r.commit("first")
	source := r.overHTTPS(r.serveHTTPS())
	source.Path = "chart"
	_, err := newFetcher(t, Limits{Object: 1 << 20}).Fetch(context.Background(), source)
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "a file larger than 1 MiB")
	_, err = newFetcher(t, Limits{Inflated: 1 << 20}).Fetch(context.Background(), source)
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "more than 1 MiB unpacked")
	_, err = newFetcher(t, Limits{Objects: 3}).Fetch(context.Background(), source)
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "more than 3 objects")
	_, err = newFetcher(t, Limits{Advertised: 64}).Fetch(context.Background(), source)
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "too many references")

	r.write("chart/zeros", strings.Repeat("\x00", 6<<20))
	r.commit("second")
	_, err = fetch(t, source)
	wantFault(t, err, enginev1.Fault_CHART_INVALID, `"zeros"`, "5 MiB")
}

func TestADeltaSaysWhatItMakes(t *testing.T) {
	begin := &beginning{}
	for _, part := range [][]byte{{0x80}, {0x01, 0x80, 0x80, 0x80}, {0x80, 0x01, 0xff, 0xff}} {
		if _, err := begin.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if got := begin.target(); got != 1<<28 {
		t.Fatalf("got %d", got)
	}
	if got := (&beginning{bytes: []byte{0x80}}).target(); got >= 0 {
		t.Fatalf("half a delta makes %d", got)
	}
}

func TestWhatACommitMayNotHold(t *testing.T) {
	for name, row := range map[string]struct {
		prepare func(*repository)
		path    string
		kind    fault.Kind
		part    string
	}{
		"a link":        {func(r *repository) { link(t, r, "chart/passwd", "/etc/passwd") }, "chart", enginev1.Fault_CHART_INVALID, "symbolic link"},
		"a linked path": {func(r *repository) { link(t, r, "linked", "chart") }, "linked", enginev1.Fault_CHART_NOT_FOUND, `no directory "linked"`},
		"a submodule": {func(r *repository) {
			r.git("add", "-A")
			r.git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("ab", 20)+",chart/charts/sub")
		}, "chart", enginev1.Fault_CHART_INVALID, "submodule"},
		"no Chart.yaml": {func(r *repository) { r.write("empty/x", "x") }, "empty", enginev1.Fault_CHART_NOT_FOUND, "no Chart.yaml"},
		"no directory":  {func(*repository) {}, "nowhere", enginev1.Fault_CHART_NOT_FOUND, `no directory "nowhere"`},
		"a bad name":    {func(r *repository) { r.write("chart/Chart.yaml", "name: ../x\n") }, "chart", enginev1.Fault_CHART_INVALID, "usable name"},
		"a way out":     {func(*repository) {}, "../chart", enginev1.Fault_CHART_INVALID, "outside"},
		"from the root": {func(*repository) {}, "/chart", enginev1.Fault_CHART_INVALID, "absolute"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.chart("chart", "1.0.0")
			row.prepare(r)
			if name != "a submodule" {
				r.git("add", "-A")
			}
			r.git("commit", "-q", "-m", "all")
			r.publish()
			source := r.overHTTPS(r.serveHTTPS())
			source.Path = row.path
			_, err := fetch(t, source)
			wantFault(t, err, row.kind, row.part)
		})
	}
}

func link(t *testing.T, r *repository, name, target string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(r.work, name)); err != nil {
		t.Fatal(err)
	}
}

func TestAServerThatDoesNotAnswer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	key, private := newKey(t)
	credentials := Credentials{PrivateKey: private, KnownHosts: []byte(knownhosts.Line([]string{silent.Addr().String()}, key.PublicKey()))}
	for _, url := range []string{"ssh://" + silent.Addr().String() + "/x", "https://" + silent.Addr().String() + "/x"} {
		began := time.Now()
		_, err := newFetcher(t, Limits{Timeout: 100 * time.Millisecond}).Fetch(context.Background(), Request{URL: url, Credentials: credentials})
		wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, "did not answer in time")
		if time.Since(began) > 10*time.Second {
			t.Errorf("%s took %s", url, time.Since(began))
		}
	}
}

// A pack that trickles in ends with the time there is, not with the server's patience.
func TestASlowServer(t *testing.T) {
	r := newRepository(t)
	r.chart("", "1.0.0")
	r.commit("first")
	inner := r.serveHTTPS()
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodPost {
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte("0034shallow "))
			w.(http.Flusher).Flush()
			<-request.Context().Done()
			return
		}
		inner.Config.Handler.ServeHTTP(w, request)
	}))
	t.Cleanup(slow.Close)
	source := Request{URL: slow.URL + "/charts.git", PlainHTTP: true, Credentials: Credentials{Username: user, Password: password}}
	_, err := newFetcher(t, Limits{Timeout: 2 * time.Second}).Fetch(context.Background(), source)
	wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, "did not answer in time")
}

func TestARottenPack(t *testing.T) {
	f := newFetcher(t, Limits{})
	for _, content := range []string{"", "PACK", "PACK\x00\x00\x00\x02\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff", "not a pack at all"} {
		if err := f.measure(bytes.NewReader([]byte(content)), "x"); !fault.Is(err, enginev1.Fault_CHART_INVALID) {
			t.Errorf("%q: %v", content, err)
		}
	}
}
