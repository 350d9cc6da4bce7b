package chart

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

func TestFindVersions(t *testing.T) {
	web, r := newRepository(t, "1.0.0", "1.2.0", "1.3.0", "2.0.0", "3.0.0-rc.1"), newRegistry(t, "", false)
	for v, packed := range web.charts {
		r.push(t, "", packed, v)
	}
	for where, source := range map[string]*enginev1.ChartSource{
		"repository": {Repository: web.URL},
		"registry":   {Repository: "oci://" + r.host() + "/charts", PlainHttp: true},
	} {
		t.Run(where, func(t *testing.T) {
			queries := []Query{
				{Name: "small", Version: "~1.2", Held: "1.2.0"},
				{Name: "small", Version: "^1", Held: "v1.2.0"},
				{Name: "small", Version: "^1", Held: "1.9.0"},
				{Name: "small", Version: "^1", Held: "2.0.0"},
				{Name: "small", Version: "", Held: "1.3.0"},
				{Name: "small", Version: ">7"},
				{Name: "other"},
			}
			answers, err := newStore(t).FindVersions(context.Background(), source, queries, 0)
			if err != nil {
				t.Fatal(err)
			}
			digest := func(v string) string { return digestOf(web.charts[v]) }
			for i, want := range []Answer{
				{Version: "1.2.0", Digest: digest("1.2.0"), HeldFits: true, HeldDigest: digest("1.2.0")},
				{Version: "1.3.0", Digest: digest("1.3.0"), HeldFits: true, Newer: true, HeldDigest: digest("1.2.0")},
				{Version: "1.3.0", Digest: digest("1.3.0"), HeldFits: true},
				{Version: "1.3.0", Digest: digest("1.3.0"), HeldDigest: digest("2.0.0")},
				{Version: "2.0.0", Digest: digest("2.0.0"), HeldFits: true, Newer: true, HeldDigest: digest("1.3.0")},
			} {
				if answers[i] != want {
					t.Errorf("%v: got %v, want %v", queries[i], answers[i], want)
				}
			}
			wantFault(t, answers[5].Err, enginev1.Fault_CHART_NOT_FOUND, "no version >7")
			wantFault(t, answers[6].Err, enginev1.Fault_CHART_NOT_FOUND, `no chart "other"`)
		})
	}
	if n := web.count("/index.yaml"); n != 1 {
		t.Errorf("the index was fetched %d times for seven questions", n)
	}
	if n := r.count("/small/tags/list"); n != 1 {
		t.Errorf("the tags were listed %d times", n)
	}
	if n := web.count("/small-1.3.0.tgz"); n != 0 {
		t.Error("a question downloads nothing")
	}
	web.down.Store(true)
	answers, err := newStore(t).FindVersions(context.Background(), &enginev1.ChartSource{Repository: web.URL}, []Query{{Name: "small"}, {Name: "other"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantFault(t, answers[1].Err, enginev1.Fault_CHART_UNAVAILABLE, "503")
	if n := web.count("/index.yaml"); n != 2 {
		t.Errorf("a repository that is down was asked %d times", n-1)
	}
}

func TestChangedTwiceInASecond(t *testing.T) {
	moment := time.Now().UTC().Format(http.TimeFormat)
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Date", moment)
		w.Header().Set("Last-Modified", moment)
		if request.Header.Get("If-Modified-Since") == moment {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		asked++
		fmt.Fprintf(w, "apiVersion: v1\nentries:\n  small:\n  - version: 1.%d.0\n    urls: [x.tgz]\n", asked)
	}))
	defer server.Close()
	s := newStore(t)
	for _, want := range []string{"1.1.0", "1.2.0"} {
		answers, err := s.FindVersions(context.Background(), &enginev1.ChartSource{Repository: server.URL}, []Query{{Name: "small"}}, 0)
		if err != nil || answers[0].Version != want {
			t.Errorf("got %v, want %s (%v)", answers, want, err)
		}
	}
}

func TestPublishedAgain(t *testing.T) {
	r := newRepository(t, "1.0.0")
	first := digestOf(r.charts["1.0.0"])
	s := newStore(t)
	ctx := context.Background()
	if _, err := s.Resolve(ctx, r.source("1.0.0")); err != nil {
		t.Fatal(err)
	}
	r.mutex.Lock()
	r.charts["1.0.0"] = small(t, "1.0.0", file{name: "small/more", body: "x"})
	r.mutex.Unlock()
	second := digestOf(r.charts["1.0.0"])
	if info, err := s.Resolve(ctx, r.source("1.0.0")); err != nil || info.Digest != first {
		t.Errorf("a version that was resolved stays: %v %v", info, err)
	}
	// As after a restart: what the source led to is forgotten, the charts are on disk.
	again, err := New(s.options)
	if err != nil {
		t.Fatal(err)
	}
	held := r.source("1.0.0")
	held.Expected = first
	if info, err := again.Resolve(ctx, held); err != nil || info.Digest != first || info.Republished != second {
		t.Errorf("%v %v", info, err)
	}
	_, err = newStore(t).Resolve(ctx, held)
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "published again", first, second, "chart.digest")
	strict, _ := New(Options{Dir: s.options.Dir, Verify: func(_ context.Context, _ *Ask, _ *Located, packed []byte) error {
		if digestOf(packed) == first {
			return invalid("not signed")
		}
		return nil
	}})
	_, err = strict.Resolve(ctx, held)
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "published again")
	held.Digest, held.Expected = second, ""
	if info, err := newStore(t).Resolve(ctx, held); err != nil || info.Digest != second {
		t.Errorf("%v %v", info, err)
	}
}

func TestInline(t *testing.T) {
	packed := small(t, "1.0.0")
	s := newStore(t)
	info, err := s.Resolve(context.Background(), &enginev1.ChartSource{Inline: packed})
	if err != nil || info.Digest != digestOf(packed) || info.Name != "small" {
		t.Errorf("%v %v", info, err)
	}
	_, err = s.Resolve(context.Background(), &enginev1.ChartSource{Inline: packed, Digest: "sha256:" + digestOf(nil)[7:]})
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "the inline chart is "+digestOf(packed))
	_, err = s.Resolve(context.Background(), &enginev1.ChartSource{Inline: []byte("hello")})
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "not a gzip archive (from the inline chart)")
}
