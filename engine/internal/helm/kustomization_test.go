package helm

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	rspb "helm.sh/helm/v4/pkg/release/v1"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const rendered = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "registry.example/app:1"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {a: one, b: two}
`

// change applies what a request asks to the manifest above.
func change(t *testing.T, request *enginev1.RunRequest) (string, error) {
	t.Helper()
	changes, err := (&run{request: request}).postRenderer()
	if err != nil {
		return "", err
	}
	out, err := changes.Run(bytes.NewBufferString(rendered))
	if err != nil {
		return "", err
	}
	return out.String(), nil
}

func TestKustomizationChanges(t *testing.T) {
	for _, row := range []struct {
		rule, kustomization string
		wants               []string
	}{
		{"an empty one changes nothing", `{}`, []string{"name: web", "replicas: 1"}},
		{"it may say what it is", `{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "metadata": {"name": "x"}}`, []string{"name: web"}},
		{"patches", `{"patches": [{"target": {"kind": "ConfigMap"}, "patch": "[{\"op\": \"replace\", \"path\": \"/data/a\", \"value\": \"three\"}]"}]}`, []string{"a: three", "b: two"}},
		{"images", `{"images": [{"name": "registry.example/app", "newName": "mirror.example/app", "newTag": "2"}]}`, []string{"image: mirror.example/app:2"}},
		{"replicas", `{"replicas": [{"name": "web", "count": 5}]}`, []string{"replicas: 5"}},
		{"labels leave selectors alone", `{"labels": [{"pairs": {"team": "blue"}}]}`, []string{"    team: blue\n  name: web", "matchLabels:\n      app: web\n  template"}},
		{"commonLabels reach selectors", `{"commonLabels": {"team": "blue"}}`, []string{"matchLabels:\n      app: web\n      team: blue"}},
		{"commonAnnotations", `{"commonAnnotations": {"note": "x"}}`, []string{"annotations:\n    note: x"}},
		{"replacements", `{"replacements": [{"source": {"kind": "ConfigMap", "name": "web", "fieldPath": "data.b"}, "targets": [{"select": {"kind": "ConfigMap"}, "fieldPaths": ["data.a"]}]}]}`, []string{"a: two"}},
		{"components, in order, before the kustomization itself", `{"replicas": [{"name": "web", "count": 7}], "components": [
			{"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", "replicas": [{"name": "web", "count": 5}], "commonAnnotations": {"note": "x"}},
			{"patches": [{"target": {"kind": "ConfigMap"}, "patch": "[{\"op\": \"add\", \"path\": \"/data/note\", \"value\": \"y\"}]"}]}]}`,
			[]string{"annotations:\n    note: x", "note: \"y\"", "replicas: 7"}},
		{"generators from literals", `{"configMapGenerator": [{"name": "more", "literals": ["k=v"]}], "generatorOptions": {"disableNameSuffixHash": true}}`, []string{"name: more", "k: v"}},
	} {
		t.Run(row.rule, func(t *testing.T) {
			got, err := change(t, &enginev1.RunRequest{Kustomization: []byte(row.kustomization)})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range row.wants {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got)
				}
			}
		})
	}
}

func TestKustomizationRefusals(t *testing.T) {
	for _, row := range []struct{ rule, kustomization, says string }{
		{"no name prefix", `{"namePrefix": "x-"}`, "namePrefix is refused: names and namespaces belong to Helm's identity"},
		{"no name suffix", `{"nameSuffix": "-x"}`, "nameSuffix is refused: names and namespaces"},
		{"no namespace, however it is spelled", `{"Namespace": "x"}`, "namespace is refused: names and namespaces"},
		{"no remote base", `{"resources": ["https://git.example/base?ref=v1"]}`, "resources is refused: it leads out of the release"},
		{"no old bases", `{"bases": ["../base"]}`, "bases is refused"},
		{"no components elsewhere", `{"components": [{}, "https://git.example/c?ref=v1"]}`, "components[1]: it must be a Component, written inline"},
		{"no components in files", `{"Components": ["../c"]}`, "components[0]: it must be a Component, written inline"},
		{"components keep the rules", `{"components": [{"namePrefix": "x-"}]}`, "components[0]: namePrefix is refused: names and namespaces"},
		{"components read no files", `{"components": [{"patches": [{"path": "/etc/passwd"}]}]}`, "components[0]: patches[0] must be inline"},
		{"components have none of their own", `{"components": [{"components": ["../c"]}]}`, "components[0]: components is refused"},
		{"a kustomization is no component", `{"components": [{"kind": "Kustomization"}]}`, "components[0]: it must be a Component of"},
		{"components are a list", `{"components": {}}`, "components must be a list"},
		{"no files of CRDs", `{"crds": ["crd.json"]}`, "crds is refused"},
		{"no schema file", `{"openapi": {"path": "schema.json"}}`, "openapi is refused"},
		{"no configurations", `{"configurations": ["c.yaml"]}`, "configurations is refused"},
		{"no charts", `{"helmCharts": [{"name": "x"}]}`, "helmCharts is refused: it brings other programs"},
		{"no inline transformers", `{"transformers": ["{apiVersion: builtin, kind: PrefixTransformer, metadata: {name: x}, prefix: x-}"]}`, "transformers is refused"},
		{"no generator plugins", `{"generators": ["g.yaml"]}`, "generators is refused"},
		{"no order", `{"sortOptions": {"order": "fifo"}}`, "sortOptions is refused: Helm decides"},
		{"old patches have a new name", `{"patchesStrategicMerge": ["x"]}`, "patchesStrategicMerge is refused: use patches instead"},
		{"patches are inline", `{"patches": [{"path": "/etc/passwd"}]}`, "patches[0] must be inline"},
		{"replacements are inline", `{"replacements": [{"path": "r.yaml"}]}`, "replacements[0] must be inline"},
		{"generators read no files", `{"secretGenerator": [{"name": "x", "files": ["/etc/passwd"]}]}`, "secretGenerator[0] may have literals only"},
		{"generators read no environment files", `{"configMapGenerator": [{"name": "x", "env": ".env"}]}`, "configMapGenerator[0] may have literals only"},
		{"generators rename nothing of the chart", `{"configMapGenerator": [{"name": "web", "behavior": "merge", "literals": ["a=b"]}]}`, "configMapGenerator[0] may only create"},
		{"an unknown field is named", `{"patchs": []}`, `unknown field "patchs"`},
		{"a component is no kustomization", `{"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}`, "it must be a Kustomization"},
		{"one label, one place", `{"commonLabels": {"a": "b"}, "labels": [{"pairs": {"a": "c"}}]}`, "exists in both commonLabels and labels"},
		{"not an object", `[]`, "cannot unmarshal array"},
	} {
		t.Run(row.rule, func(t *testing.T) {
			_, err := change(t, &enginev1.RunRequest{Kustomization: []byte(row.kustomization)})
			if !fault.Is(err, enginev1.Fault_INVALID) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, want %q", err, row.says)
			}
		})
	}
}

func TestKustomizationComesAfterPatches(t *testing.T) {
	got, err := change(t, &enginev1.RunRequest{
		Patches:       [][]byte{[]byte(`{patches: [{target: {kind: ConfigMap}, patch: "- {op: add, path: /data/new, value: one}"}]}`)},
		Kustomization: []byte(`{"patches": [{"target": {"kind": "ConfigMap"}, "patch": "- {op: replace, path: /data/new, value: two}"}]}`),
	})
	if err != nil || !strings.Contains(got, "new: two") {
		t.Errorf("%s %v", got, err)
	}
}

func TestNothingAskedIsNoPostRenderer(t *testing.T) {
	if changes, err := (&run{request: &enginev1.RunRequest{}}).postRenderer(); changes != nil || err != nil {
		t.Errorf("%v %v", changes, err)
	}
}

func TestKustomizeErrorsRepeatNothing(t *testing.T) {
	const canary = "hunter2canary"
	for _, row := range []struct{ rule, patch, says string }{
		{"no patch at all", `"` + canary + `"`, "unable to parse SM or JSON patch"},
		{"no target", `"- {op: add, path: /data/a, value: ` + canary + `}"`, "must specify a target for JSON patch"},
		{"no such object", `"{apiVersion: v1, kind: Secret, metadata: {name: none}, data: {a: ` + canary + `}}"`, "no resource matches strategic merge patch"},
		{"no such path", `"- {op: replace, path: /none/a, value: ` + canary + `}", target: {kind: ConfigMap}`, "/none/a"},
		{"the wrong shape", `"{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: ` + canary + `}", target: {kind: ConfigMap}`, ""},
		{"bad selector", `"- {op: add, path: /data/a, value: ` + canary + `}", target: {kind: "("}`, ""},
	} {
		t.Run(row.rule, func(t *testing.T) {
			got, err := change(t, &enginev1.RunRequest{Patches: [][]byte{[]byte("{patches: [{patch: " + row.patch + "}]}")}})
			if row.says == "" && err == nil {
				return // kustomize finds nothing wrong with it
			}
			if !fault.Is(err, enginev1.Fault_RENDER) || !strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), canary) {
				t.Errorf("%s %v", got, err)
			}
			t.Log(err)
		})
	}
}

func TestChartAnnotations(t *testing.T) {
	for _, row := range []struct {
		rule   string
		action enginev1.RunRequest_Action
		want   map[string]string
	}{
		{"an install adds them", enginev1.RunRequest_INSTALL, map[string]string{"own": "1", "ours": "new", "more": "x"}},
		{"an upgrade adds them", enginev1.RunRequest_UPGRADE, map[string]string{"own": "1", "ours": "new", "more": "x"}},
		{"a rollback keeps the record's", enginev1.RunRequest_ROLLBACK, map[string]string{"own": "1", "ours": "old"}},
	} {
		t.Run(row.rule, func(t *testing.T) {
			own := map[string]string{"own": "1", "ours": "old"}
			rel := &rspb.Release{Chart: &chartv2.Chart{Metadata: &chartv2.Metadata{Annotations: own}}}
			a := &run{request: &enginev1.RunRequest{Action: row.action, ChartAnnotations: map[string]string{"ours": "new", "more": "x"}}}
			a.annotateChart(rel)
			if got := rel.Chart.Metadata.Annotations; !reflect.DeepEqual(got, row.want) || len(own) != 2 {
				t.Errorf("%v %v", got, own)
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	got, err := decodeValues([]byte(`{"set": 1000000, "file": 1000000.0, "list": [1, 1e30, 99999999999999999999], "text": "1"}`))
	want := map[string]any{"set": int64(1000000), "file": 1e6, "list": []any{int64(1), 1e30, 1e20}, "text": "1"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %v", got, err)
	}
	for _, empty := range []string{"", "null", "{}"} {
		if got, err := decodeValues([]byte(empty)); err != nil || got == nil || len(got) != 0 {
			t.Errorf("%q: %v %v", empty, got, err)
		}
	}
	if _, err := decodeValues([]byte(`[1]`)); !fault.Is(err, enginev1.Fault_VALUES) {
		t.Error(err)
	}
}
