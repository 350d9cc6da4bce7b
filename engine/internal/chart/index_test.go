package chart

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

const shapely = `apiVersion: v1
entries:
  # a comment
  alpha:
  - name: alpha
    version: 1.0.0
    description: |
      text with
      entries: that
      beta: looks like a chart
    urls: [alpha-1.0.0.tgz]
  - version: 2.0
    urls:
    - alpha-2.0.tgz

  "beta-2":
    - version: v1.1.0
      description: "a long
        line"
      urls: [beta.tgz]
  empty:
generated: "2024-01-01T00:00:00Z"
`

func TestIndexIsCutAsYAMLReadsIt(t *testing.T) {
	flow := `{"apiVersion": "v1", "entries": {"alpha": [{"version": "1.0.0", "urls": ["a.tgz"]}, null]}}`
	for name, text := range map[string]string{
		"shapely":       shapely,
		"windows":       strings.ReplaceAll(shapely, "\n", "\r\n"),
		"version last":  strings.Replace(shapely, "apiVersion: v1\n", "", 1) + "apiVersion: v1\n",
		"document mark": "---\n" + shapely,
		"JSON":          flow,
		"flow YAML":     "apiVersion: v1\nentries: {alpha: [{version: 1.0.0, urls: [a.tgz]}]}\n",
		"flow chart":    "apiVersion: v1\nentries:\n  alpha: [{version: 1.0.0, urls: [a.tgz]}]\n  beta:\n  - version: 1.0.0\n",
		"anchors":       "apiVersion: v1\nentries:\n  alpha: &all\n  - version: 1.0.0\n  beta: *all\n",
		"deep":          "apiVersion: v1\nentries:\n        alpha:\n        - version: 1.0.0\n",
		"nothing":       "apiVersion: v1\nentries: {}\n",
	} {
		t.Run(name, func(t *testing.T) {
			var whole struct {
				Entries map[string][]*indexVersion `json:"entries"`
			}
			if err := yaml.Unmarshal([]byte(text), &whole); err != nil {
				t.Fatal(err)
			}
			parsed, err := parseIndex([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			for chart, want := range whole.Entries {
				got, err := parsed.versions(chart)
				if err != nil || fmt.Sprint(got) != fmt.Sprint(usable(want)) {
					t.Errorf("%s: %v, want %v (%v)", chart, got, usable(want), err)
				}
			}
			if other, _ := parsed.versions("other"); len(other) != 0 {
				t.Error(other)
			}
		})
	}
	for name, text := range map[string]string{
		"no version": "entries: {}\n", "no YAML": "\tx: [", "a page": "<html>not found</html>", "nothing": "",
	} {
		if _, err := parseIndex([]byte(text)); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestIndexWithBadEntries(t *testing.T) {
	packed := small(t, "1.0.0")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/index.yaml" {
			fmt.Fprintf(w, `apiVersion: v1
entries:
  broken:
  - just text
  small:
  -
  - {name: small}
  - {name: small, version: not-semver, urls: [x.tgz]}
  - {name: small, version: 3.0.0}
  - {name: small, version: 1.0.0, urls: [first.tgz], digest: %s}
  - {name: small, version: 1.0.0, urls: [second.tgz]}
  small:
  - {name: small, version: 0.9.0, urls: [first.tgz], digest: "0000"}
`, strings.TrimPrefix(digestOf(packed), "sha256:"))
			return
		}
		if request.URL.Path != "/first.tgz" {
			http.NotFound(w, request)
			return
		}
		_, _ = w.Write(packed)
	}))
	defer server.Close()
	s := newStore(t)
	for _, version := range []string{"1.0.0", "~1", "0.9.0"} {
		if _, err := s.Resolve(context.Background(), &enginev1.ChartSource{Repository: server.URL, Name: "small", Version: version}); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	_, err := s.Resolve(context.Background(), &enginev1.ChartSource{Repository: server.URL, Name: "broken"})
	wantFault(t, err, enginev1.Fault_CHART_INVALID, `chart "broken" in the index`)
	_, err = s.Resolve(context.Background(), &enginev1.ChartSource{Repository: server.URL, Name: "small", Version: "3.0.0"})
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "no URL")
}

func TestLargeIndexIsReadOnce(t *testing.T) {
	const charts, versions = 100, 200
	packed := small(t, "1.0.0")
	var body strings.Builder
	body.WriteString("apiVersion: v1\nentries:\n")
	for c := range charts {
		fmt.Fprintf(&body, "  chart%d:\n", c)
		for v := range versions {
			fmt.Fprintf(&body, "  - apiVersion: v2\n    description: %s\n    digest: %s\n    name: chart%d\n    urls:\n    - c.tgz\n    version: 1.%d.0\n",
				strings.Repeat("many words ", 80), strings.TrimPrefix(digestOf(packed), "sha256:"), c, v)
		}
	}
	if body.Len() < 19<<20 {
		t.Fatalf("an index of %d bytes is no large one", body.Len())
	}
	var asked, unchanged int
	var mutex sync.Mutex
	modified := "Mon, 02 Jan 2006 15:04:05 GMT"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path != "/index.yaml" {
			_, _ = w.Write(packed)
			return
		}
		mutex.Lock()
		defer mutex.Unlock()
		w.Header().Set("Last-Modified", modified) // no ETag: some servers have only this
		if request.Header.Get("If-Modified-Since") == modified {
			unchanged++
			w.WriteHeader(http.StatusNotModified)
			return
		}
		asked++
		_, _ = w.Write([]byte(body.String()))
	}))
	defer server.Close()
	s := newStore(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			source := &enginev1.ChartSource{Repository: server.URL, Name: fmt.Sprintf("chart%d", i%20), Version: fmt.Sprintf("1.%d.0", i)}
			if _, err := s.Resolve(context.Background(), source); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	runtime.ReadMemStats(&after)
	if asked != 1 {
		t.Errorf("fetched %d times", asked)
	}
	pages := s.sources["http"].(*web)
	found, err := pages.index(context.Background(), &Ask{ChartSource: &enginev1.ChartSource{Repository: server.URL}, Network: s.network}, nil, time.Hour)
	if err != nil || found.reads != 20 {
		t.Errorf("charts were read %d times (%v)", found.reads, err)
	}
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 400 {
		t.Errorf("it took %d MiB", used)
	}
	answers, err := s.FindVersions(context.Background(), &enginev1.ChartSource{Repository: server.URL}, []Query{{Name: "chart1"}, {Name: "chart2"}}, 0)
	if err != nil || answers[1].Version != "1.199.0" || asked != 1 || unchanged != 1 {
		t.Errorf("%v %v: %d fetched, %d unchanged", answers, err, asked, unchanged)
	}
}
