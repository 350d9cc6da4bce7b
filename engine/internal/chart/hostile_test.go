package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// bomb is an archive of one file with as many zeros; gzip members can follow each other, so it is quickly made.
func bomb(t *testing.T, name string, size int64) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	if err := tar.NewWriter(zipped).WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: size}); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	const piece = 8 << 20
	var zeros bytes.Buffer
	again, _ := gzip.NewWriterLevel(&zeros, gzip.BestCompression)
	if _, err := again.Write(make([]byte, piece)); err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	for range size / piece {
		out.Write(zeros.Bytes())
	}
	return out.Bytes()
}

func TestBombs(t *testing.T) {
	inner := string(bomb(t, "b/data", 3500<<20))
	packed := small(t, "1.0.0",
		file{name: "small/charts/a.tgz", body: inner}, file{name: "small/charts/b.tgz", body: inner},
		file{name: "small/charts/c.tgz", body: inner})
	if len(packed) > 150<<10 {
		t.Fatalf("the bomb has %d bytes: it proves nothing", len(packed))
	}
	// Nothing but directories, in very many archives: no files to count, much to read.
	var dirs bytes.Buffer
	zipped := gzip.NewWriter(&dirs)
	w := tar.NewWriter(zipped)
	for i := range 20_000 {
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("d/%d/", i%7), Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteHeader(&tar.Header{Name: "d/file", Typeflag: tar.TypeReg, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	_, _ = w.Close(), zipped.Close()
	noise := make([]byte, 200<<10)
	_, _ = rand.Read(noise)
	var many []file
	for i := range 200 {
		many = append(many, file{name: fmt.Sprintf("small/charts/%d.tgz", i), body: dirs.String()})
	}
	for name, row := range map[string]struct {
		packed []byte
		says   string
	}{
		"10 GiB in subcharts":     {packed, "5 MiB"},
		"1 GiB":                   {bomb(t, "b/data", 1<<30), "5 MiB"},
		"endless directories":     {small(t, "1.0.0", many...), "100 MiB"},
		"truncated":               {small(t, "1.0.0")[:200], "broken archive"},
		"truncated after a while": {small(t, "1.0.0", file{name: "small/big", body: string(noise)})[:100<<10], "broken archive"},
		"hard link":               {small(t, "1.0.0", file{name: "small/l", kind: tar.TypeLink, link: "small/Chart.yaml"}), "link"},
		"device":                  {small(t, "1.0.0", file{name: "small/l", kind: tar.TypeChar}), "special file"},
		"backslashes":             {small(t, "1.0.0", file{name: `small\..\..\x`, body: "x"}), "outside"},
		"drive":                   {small(t, "1.0.0", file{name: `small/c:/x`, body: "x"}), "outside"},
		"a chart called ..":       {pack(t, file{name: "x/Chart.yaml", body: "apiVersion: v2\nname: ..\nversion: 1.0.0\n"}), "name"},
		"too large":               {bytes.Repeat([]byte{0}, maxPacked+1), "10 MiB packed"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			_, err := newStore(t).Put(row.packed)
			runtime.ReadMemStats(&after)
			wantFault(t, err, enginev1.Fault_CHART_INVALID, row.says)
			if took, used := time.Since(began), (after.TotalAlloc-before.TotalAlloc)>>20; took > 10*time.Second || used > 400 {
				t.Errorf("it took %s and %d MiB", took, used)
			}
		})
	}
}

func TestSlowServers(t *testing.T) {
	stop := make(chan struct{})
	drip := func(every time.Duration, first int) http.HandlerFunc {
		return func(w http.ResponseWriter, request *http.Request) {
			tick := time.NewTicker(every)
			defer tick.Stop()
			for sent := 0; ; sent++ {
				if sent >= first {
					select {
					case <-tick.C:
					case <-stop:
						return
					case <-request.Context().Done():
						return
					}
				}
				_, _ = w.Write([]byte{'x'})
				w.(http.Flusher).Flush()
			}
		}
	}
	for name, row := range map[string]struct {
		handler http.HandlerFunc
		says    string
	}{
		"drips for ever":       {drip(20*time.Millisecond, 1), "broke off"},
		"stops in the middle":  {drip(time.Hour, 10), "it sent nothing for too long"},
		"never begins":         {drip(time.Hour, 0), "does not answer"},
		"a header of any size": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 20<<20)) }, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(row.handler)
			defer server.Close()
			defer server.CloseClientConnections() // a HEAD's connection is kept for the next request
			for _, source := range []*enginev1.ChartSource{
				{Url: server.URL + "/c.tgz"},
				{Repository: server.URL, Name: "small"},
				{Url: strings.Replace(server.URL, "http", "oci", 1) + "/charts/small:1", PlainHttp: true},
			} {
				s, err := New(Options{Dir: t.TempDir(), Timeout: 3 * time.Second, Idle: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				_, err = s.Resolve(context.Background(), source)
				if time.Since(began) > 20*time.Second {
					t.Error("held for", time.Since(began))
				}
				if strings.HasPrefix(source.GetUrl(), "oci") {
					wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE)
				} else {
					wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, row.says)
				}
			}
		})
	}
	close(stop)
}

func TestOversizedDownloads(t *testing.T) {
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		piece := make([]byte, 1<<20)
		for range 20 {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	_, err := newStore(t).Resolve(context.Background(), &enginev1.ChartSource{Url: endless.URL + "/c.tgz"})
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "larger than 10 MiB")
	said := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "999999999")
		w.WriteHeader(http.StatusOK)
	}))
	defer said.Close()
	_, err = newStore(t).Resolve(context.Background(), &enginev1.ChartSource{Url: said.URL + "/c.tgz"})
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "larger than 10 MiB")
}

func TestNotSources(t *testing.T) {
	for address, says := range map[string]string{
		"file:///etc/passwd": "disk is not a source", "/charts/small.tgz": "disk is not a source", "./small": "disk is not a source",
		"ftp://example/small.tgz": "no source for ftp", "http:///x.tgz": "not the URL of a chart",
	} {
		_, err := newStore(t).Resolve(context.Background(), &enginev1.ChartSource{Url: address})
		wantFault(t, err, enginev1.Fault_CHART_INVALID, says)
	}
	_, err := newStore(t).Resolve(context.Background(), &enginev1.ChartSource{Repository: "file:///charts", Name: "small"})
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "disk is not a source")
	r := newRepository(t, "1.0.0")
	r.absolute = "file:///charts/"
	_, err = newStore(t).Resolve(context.Background(), r.source("1.0.0"))
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "only http, https and oci are followed")
	_, err = newStore(t).Resolve(context.Background(), &enginev1.ChartSource{})
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "no source")
}

// What the guard refuses is nobody's outage: it comes out as the guard says it, from every kind of source.
func TestRefusedAddresses(t *testing.T) {
	guard, err := egress.New(egress.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Dir: t.TempDir(), DialContext: guard.DialContext, Proxy: guard.Proxy(http.ProxyFromEnvironment)})
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []*enginev1.ChartSource{
		{Repository: "http://127.0.0.1:9", Name: "small"},
		{Url: "http://127.0.0.1:9/small.tgz"},
		{Url: "oci://127.0.0.1:9/charts/small:1.0.0"},
		{Repository: "oci://127.0.0.1:9/charts", Name: "small", PlainHttp: true},
	} {
		_, err := s.Resolve(context.Background(), source)
		wantFault(t, err, enginev1.Fault_INVALID, "127.0.0.1:9 is refused")
		if !errors.Is(err, egress.ErrRefused) {
			t.Errorf("%v: %v", source, err)
		}
	}
	answers, err := s.FindVersions(context.Background(), &enginev1.ChartSource{Repository: "http://127.0.0.1:9"}, []Query{{Name: "small"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantFault(t, answers[0].Err, enginev1.Fault_INVALID, "is refused")
}
