package getterplugin

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// TestMain is this program as the engine's main function is: the child when it is told so.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Argument {
		if err := Child(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "engine:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A plugin as an operator would write one: it fetches over HTTP from where BUCKETS says. Some names misbehave.
const script = `#!/bin/sh
for url; do :; done
case "$url" in
  *silent) exec sleep 600;;
  *endless) exec yes;;
  *large) exec head -c 2000000 /dev/zero;;
  *forked) sleep 600 & echo forked; exit 0;;
  *wrong) echo "first line" >&2; echo "no such bucket, says $HELM_PLUGIN_PASSWORD at http://x/?token=abc" >&2; exit 3;;
  *quiet) exit 4;;
esac
printf '%s:%s ' "$HELM_PLUGIN_USERNAME" "$HELM_PLUGIN_PASSWORD"
printf '%s' "$url"
`

const metadata = `
apiVersion: v1
name: buckets
version: 1.0.0
type: getter/v1
runtime: subprocess
config:
  protocols: [s3, gs]
runtimeConfig:
  protocolCommands:
  - protocols: [s3, gs]
    platformCommand:
    - command: get.sh
`

func pluginDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "plugins")
	place := filepath.Join(dir, "buckets")
	if err := os.MkdirAll(place, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(place, "plugin.yaml"), []byte(metadata), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(place, "get.sh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func newPlugins(t *testing.T, timeout time.Duration) *Plugins {
	t.Helper()
	cache := t.TempDir()
	t.Cleanup(func() {
		if left, _ := os.ReadDir(cache); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	made, err := New(Options{Dir: pluginDir(t), Schemes: []string{"s3", "other"}, CacheDir: cache, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func get(t *testing.T, p *Plugins, text string) (string, error) {
	t.Helper()
	target, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	body, err := p.Get(context.Background(), target, Credentials{"jane", "hunter2"}, 1<<20)
	return string(body), err
}

func wantFault(t *testing.T, err error, kind fault.Kind, parts ...string) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Fatalf("got %v, want a fault of kind %v", err, kind)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Fatalf("%q does not say %q", err.Error(), part)
		}
	}
	for _, secret := range []string{"hunter2", "token=abc", "\n"} {
		if strings.Contains(err.Error(), secret) {
			t.Fatalf("%q is in %q", secret, err.Error())
		}
	}
}

func TestAPluginFetches(t *testing.T) {
	body, err := get(t, newPlugins(t, 0), "s3://bucket/charts/hello-1.0.0.tgz?versionId=1")
	if err != nil || body != "jane:hunter2 s3://bucket/charts/hello-1.0.0.tgz?versionId=1" {
		t.Fatalf("%q, %v", body, err)
	}
}

func TestWhatAPluginMayNot(t *testing.T) {
	p := newPlugins(t, 0)
	_, err := get(t, p, "s3://bucket/wrong")
	wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, "s3://bucket/wrong", "no such bucket, says ***")
	_, err = get(t, p, "s3://bucket/quiet")
	wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, "exited with error")
	_, err = get(t, p, "s3://bucket/endless")
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "larger than is allowed")
	_, err = get(t, p, "s3://bucket/large")
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "larger than is allowed")
	_, err = get(t, p, "gs://bucket/x") // a plugin would, the operator would not
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "the operator allows no plugin")
	_, err = get(t, p, "other://bucket/x") // the operator would, no plugin does
	wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, "no plugin provides the scheme other")
	_, err = get(t, p, "s3://jane:hunter2@bucket/x")
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "carries a user")
	if body, err := get(t, p, "s3://bucket/x"); err != nil || body == "" {
		t.Fatalf("afterwards: %q, %v", body, err)
	}
}

// The time is up for the plugin too, whether it is the plugin or something it started that goes on.
func TestAPluginThatDoesNotEnd(t *testing.T) {
	for _, name := range []string{"silent", "forked"} {
		began := time.Now()
		_, err := get(t, newPlugins(t, time.Second), "s3://bucket/"+name)
		wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, "in time")
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
}

func TestOptions(t *testing.T) {
	dir := pluginDir(t)
	none, err := New(Options{})
	if err != nil || none.Provides("s3") {
		t.Fatalf("off by default: %v, %v", none, err)
	}
	for part, options := range map[string]Options{
		"needs --getter-plugins":       {Schemes: []string{"s3"}},
		"needs --getter-plugin-scheme": {Dir: dir},
		"not a directory":              {Dir: dir + "/none", Schemes: []string{"s3"}},
		`cannot be "https"`:            {Dir: dir, Schemes: []string{"s3", "https"}},
		`cannot be "s3://"`:            {Dir: dir, Schemes: []string{"s3://"}},
		`cannot be "file"`:             {Dir: dir, Schemes: []string{"file"}},
	} {
		if _, err := New(options); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%+v: %v does not say %q", options, err, part)
		}
	}
}

// Helm's own getters come with its plugins; they must not be a way round the egress guard.
func TestHelmsOwnGettersAreNotUsed(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(server.Close)
	_, err := get(t, newPlugins(t, 0), server.URL)
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "no plugin")
	if asked {
		t.Fatal("the server was asked")
	}
}
