package chart

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/registry"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// ociRegistry is as much of a registry as a pull needs.
type ociRegistry struct {
	*httptest.Server
	blobs map[string][]byte // by digest
	tags  map[string]string // tag: manifest digest
	asked int
	user  string
}

func newRegistry(t *testing.T, versions ...string) *ociRegistry {
	t.Helper()
	r := &ociRegistry{blobs: map[string][]byte{}, tags: map[string]string{}}
	for _, v := range versions {
		packed := small(t, v)
		config := []byte(`{}`)
		manifest, _ := json.Marshal(map[string]any{
			"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
			"config": map[string]any{"mediaType": registry.ConfigMediaType, "digest": digestOf(config), "size": len(config)},
			"layers": []any{map[string]any{"mediaType": registry.ChartLayerMediaType, "digest": digestOf(packed), "size": len(packed)}},
		})
		r.blobs[digestOf(packed)], r.blobs[digestOf(config)], r.blobs[digestOf(manifest)] = packed, config, manifest
		r.tags[strings.ReplaceAll(v, "+", "_")] = digestOf(manifest)
	}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *ociRegistry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.asked++
	if user, _, _ := request.BasicAuth(); r.user != "" && user != r.user {
		w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	path := strings.TrimPrefix(request.URL.Path, "/v2/charts/small/")
	if path == "tags/list" {
		names := []string{}
		for tag := range r.tags {
			names = append(names, tag)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "charts/small", "tags": names})
		return
	}
	digest := path[strings.Index(path, "/")+1:]
	if tagged, ok := r.tags[digest]; ok {
		digest = tagged
	}
	body, ok := r.blobs[digest]
	if !ok {
		http.NotFound(w, request)
		return
	}
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	if strings.HasPrefix(path, "manifests/") {
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	}
	if request.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

func (r *ociRegistry) source(version string) *enginev1.ChartSource {
	return &enginev1.ChartSource{
		Repository: strings.Replace(r.URL, "http://", "oci://", 1) + "/charts", Name: "small", Version: version, PlainHttp: true,
	}
}

func TestRegistry(t *testing.T) {
	s, r := newStore(t), newRegistry(t, "1.0.0", "1.2.0+build.1", "2.0.0-rc.1")
	ctx := context.Background()
	for wanted, got := range map[string]string{"v1.0.0": "1.0.0", "1.0.0": "1.0.0", "": "1.2.0+build.1", "^1": "1.2.0+build.1", "1.2.0+build.1": "1.2.0+build.1"} {
		if info, err := s.Resolve(ctx, r.source(wanted)); err != nil || info.Version != got {
			t.Errorf("%q: %v %v", wanted, info, err)
		}
	}
	r.asked = 0
	if _, err := s.Resolve(ctx, r.source("1.0.0")); err != nil || r.asked != 0 {
		t.Errorf("asked %d times: %v", r.asked, err)
	}
	_, err := s.Resolve(ctx, r.source("9.9.9"))
	wantFault(t, err, enginev1.Fault_CHART_NOT_FOUND, `chart "small" has no version 9.9.9`, "newest is 1.2.0+build.1")
	other := r.source("1.0.0")
	other.Name = "other"
	_, err = s.Resolve(ctx, other)
	wantFault(t, err, enginev1.Fault_CHART_NOT_FOUND)
	byDigest := &enginev1.ChartSource{Url: r.source("").GetRepository() + "/small@" + r.tags["1.0.0"], PlainHttp: true}
	if info, err := s.Resolve(ctx, byDigest); err != nil || info.Version != "1.0.0" {
		t.Errorf("%v %v", info, err)
	}
	byTag := &enginev1.ChartSource{Url: r.source("").GetRepository() + "/small:1.0.0", PlainHttp: true, Digest: r.tags["1.0.0"]}
	if info, err := s.Resolve(ctx, byTag); err != nil || info.Version != "1.0.0" {
		t.Errorf("%v %v", info, err)
	}
	pinned := r.source("1.0.0")
	pinned.Digest = "sha256:" + strings.Repeat("1", 64)
	_, err = s.Resolve(ctx, pinned)
	wantFault(t, err, enginev1.Fault_CHART_INVALID, strings.Repeat("1", 64), r.tags["1.0.0"])
	r.user = "joe"
	_, err = s.Resolve(ctx, r.source("^1.0"))
	wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE)
	known := r.source("^1.0")
	known.Username, known.Password = "joe", "secret"
	if _, err := s.Resolve(ctx, known); err != nil {
		t.Error(err)
	}
	r.Close()
	_, err = s.Resolve(ctx, r.source("~1"))
	wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, "does not answer")
}
