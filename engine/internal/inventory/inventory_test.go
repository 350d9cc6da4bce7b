package inventory

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/drift"
)

const manifest = `---
# Source: a/templates/a.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: one
data:
  text: |
    not a document:
    ---
    kind: Secret
---
apiVersion: example.org/v1
kind: Wide
metadata: {name: w, namespace: ignored}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two, namespace: other}
--- # a comment
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: wides.example.org}
---
apiVersion: batch/v1
kind: Job
metadata: {name: hook, annotations: {helm.sh/hook: pre-install}}
---
: : broken [
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: 123}}
- {apiVersion: v1, kind: Namespace, metadata: {name: ns}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
---
# nothing
`

func TestFromManifest(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Wide"}, meta.RESTScopeRoot)
	want := []Ref{
		{"v1", "ConfigMap", "home", "one"},
		{"example.org/v1", "Wide", "", "w"},
		{"v1", "ConfigMap", "other", "two"},
		{"v1", "Secret", "home", "123"},
		{"v1", "Namespace", "", "ns"},
	}
	if got := FromManifest(manifest, "home", mapper); !slices.Equal(got, want) {
		t.Fatalf("got  %v\nwant %v", got, want)
	}
	if got := FromManifest("", "home", nil); got != nil {
		t.Fatalf("got %v of nothing", got)
	}
}

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	store := NewStore(dir)
	refs := []Ref{NewRef("v1", "ConfigMap", "home", "one")}
	store.Save("1234-abcd", "7", refs, []uint64{1 << 63})
	if got, traces, ok := NewStore(dir).Load("1234-abcd", "7"); !ok || !slices.Equal(got, refs) || !slices.Equal(traces, []uint64{1 << 63}) {
		t.Fatalf("got %v, %v, %v", got, traces, ok)
	}
	if _, _, ok := store.Load("1234-abcd", "8"); ok {
		t.Fatal("another state of the record is another inventory")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("left %v, %v", files, err)
	}
	for _, broken := range []string{"", "{", `{"rv":"7","refs":[{}]}`} {
		if err := os.WriteFile(files[0], []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, ok := store.Load("1234-abcd", "7"); ok {
			t.Fatalf("believed %q", broken)
		}
	}
	store.Save("../../escape", "7", refs, nil)
	store.Discard("1234-abcd")
	if files, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(files) != 0 {
		t.Fatalf("left %v", files)
	}
}

func TestMemory(t *testing.T) {
	store := NewStore("")
	var heard []int
	cancel := store.Listen(Listener{
		Put: func(_, _ string, number int) { heard = append(heard, number) },
		Applied: func(_, _ string, number int, traces map[Ref]drift.Trace) {
			heard = append(heard, number*10+len(traces))
		},
	})
	store.Put("ns", "a", 1, []Ref{{Name: "x"}, {Name: "y", Namespace: "ns"}})
	store.Applied("ns", "a", 1, map[Ref]drift.Trace{{Name: "y"}: {Own: 7}})
	if got := store.Traces("ns", "a", 1); !slices.Equal(got, []uint64{0, 7}) {
		t.Fatalf("traces are %v", got)
	}
	cancel()
	store.Put("ns", "a", 2, nil)
	if _, ok := store.Get("ns", "a", 1); !ok || !slices.Equal(heard, []int{1, 11}) {
		t.Fatalf("heard %v", heard)
	}
	store.Forget("ns", "a", 1)
	if _, ok := store.Get("ns", "a", 1); ok || store.Traces("ns", "a", 1) != nil {
		t.Fatal("not forgotten")
	}
}
