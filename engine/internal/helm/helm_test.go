package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/chart"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// pack makes a chart named demo of those files.
func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	all := map[string]string{"Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\nappVersion: '7'\n"}
	for name, body := range files {
		all[name] = body
	}
	for name, body := range all {
		if err := w.WriteHeader(&tar.Header{Name: "demo/" + name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(body))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const crdText = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\n"

func TestCRDsLeaveManifests(t *testing.T) {
	kept := "# Source: a\napiVersion: v1\nkind: ConfigMap\ndata: {note: CustomResourceDefinition}\n"
	manifest := "---\n" + kept + "---\n# Source: b\n" + crdText + "---\n" + kept
	if got := withoutCRDs(manifest); got != "---\n"+kept+"---\n"+kept {
		t.Errorf("%q", got)
	}
	if found := crdDocuments(manifest); len(found) != 1 || !strings.Contains(found[0], "things.example.com") {
		t.Errorf("%q", found)
	}
	if plain := "---\nkind: x\n"; withoutCRDs(plain) != plain {
		t.Error("a manifest without CRDs is not touched")
	}
}

func TestMessages(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"execution error at (demo/templates/x.yaml:12:5): no password", "templates/x.yaml:12:5: no password"},
		{"parse error at (demo/templates/x.yaml:3): unexpected EOF", "templates/x.yaml:3: unexpected EOF"},
		{"demo/templates/x.yaml:2:11\n  executing \"demo/templates/x.yaml\" at <.Values.a.b>:\n    nil pointer evaluating interface {}.b\n", "templates/x.yaml:2:11: at <.Values.a.b>: nil pointer evaluating interface {}.b"},
		{"YAML parse error on demo/templates/x.yaml: error converting YAML to JSON: yaml: line 4: did not find expected key", "templates/x.yaml: what it renders is not YAML: line 4: did not find expected key"},
		{"demo/charts/sub/templates/x.yaml:1:2\n  bad", "charts/sub/templates/x.yaml:1:2: bad"},
	} {
		got, ok := renderMessage(row.text)
		if !ok || got != row.want {
			t.Errorf("got  %q\nwant %q", got, row.want)
		}
	}
	if got := redact(`error during tpl function execution for "password: {{ hunter2": boom`); strings.Contains(got, "hunter2") {
		t.Error(got)
	}
	schemaText := "values don't meet the specifications of the schema(s) in the following chart(s):\ndemo:\n- at '/a/b': got string, want integer\n- at '/c': 'hunter2' does not match pattern '^a$'\n"
	got, _ := schemaMessage(schemaText)
	if want := "the values violate the chart's schema: a.b: got string, want integer; c: the value does not match pattern '^a$'"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestExplain(t *testing.T) {
	a := &run{request: &enginev1.RunRequest{Namespace: "ns", Name: "app"}}
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("admission webhook said no"))
	applied := func(kind string, err error) error {
		return fmt.Errorf("server-side apply failed for object ns/web v1, Kind=%s: %w", kind, err)
	}
	for _, row := range []struct {
		err  error
		kind enginev1.Fault_Kind
		says string
	}{
		{errors.New("another operation (install/upgrade/rollback) is in progress"), enginev1.Fault_BUSY, ""},
		{applied("Service", refusal), enginev1.Fault_REJECTED, "the API server refused Service web: "},
		{errors.Join(applied("Service", refusal), applied("ConfigMap", refusal)), enginev1.Fault_REJECTED, "ConfigMap web: "},
		{applied("ConfigMap", apierrors.NewConflict(schema.GroupResource{}, "web", errors.New("conflict with \"kubectl\""))), enginev1.Fault_CONFLICT, "kubectl"},
		{fmt.Errorf("release app failed: %w", &waitError{purpose: "ready", objects: []string{"Deployment web: 0 of 1"}, cause: context.DeadlineExceeded}), enginev1.Fault_TIMEOUT, "Deployment web"},
		{&waitError{purpose: "ready", objects: []string{"Deployment web: 0 of 1"}, cause: context.Canceled}, enginev1.Fault_CANCELLED, "Deployment web"},
		{fmt.Errorf("failed post-install: %w", &waitError{purpose: "hook", objects: []string{"Job migrate: failed"}, failed: true}), enginev1.Fault_HOOK, "Job migrate"},
		{errors.New("something else"), enginev1.Fault_UNKNOWN, "something else"},
	} {
		got := a.explain(row.err)
		if got.Kind != row.kind || !strings.Contains(got.Message, row.says) || strings.Contains(got.Message, "\n") {
			t.Errorf("%v: got %s %q", row.err, got.Kind, got.Message)
		}
	}
	if a.explain(nil) != nil {
		t.Error("no error is no fault")
	}
}

func TestStamps(t *testing.T) {
	annotations := map[string]string{digestAnnotation: "r2-abc"}
	if stampOf(annotations, digestAnnotation, 2) != "abc" || stampOf(annotations, digestAnnotation, 3) != "" || stampOf(nil, ownerAnnotation, 1) != "" {
		t.Error("a stamp counts for its own revision only")
	}
}

func TestCompletion(t *testing.T) {
	job := func(condition string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "status": map[string]any{
			"conditions": []any{map[string]any{"type": condition, "status": "True", "message": "m"}},
		}}}
	}
	for condition, want := range map[string]verdict{"Complete": done, "Failed": failed, "Suspended": pending} {
		if got, _ := completion(job(condition)); got != want {
			t.Errorf("%s: %v", condition, got)
		}
	}
	if got, _ := completion(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}); got != done {
		t.Error("a ConfigMap need only exist")
	}
}

func TestRenderWithoutCluster(t *testing.T) {
	charts, err := chart.New(chart.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	info, err := charts.Put(pack(t, map[string]string{
		"values.yaml":         "a: 1\n",
		"crds/t.yaml":         crdText,
		"templates/c.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {a: \"{{ .Values.a }}\"}\n---\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\n",
		"templates/d.yaml":    strings.ReplaceAll(crdText, "things", "others"),
		"templates/NOTES.txt": "hello {{ .Release.Revision }}",
		"templates/hook.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: h, annotations: {helm.sh/hook: pre-install}}\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	request := &enginev1.RenderRequest{ChartDigest: info.Digest, Name: "app", Namespace: "ns", Revision: 3, IsUpgrade: true, Values: []byte(`{"a": 2}`)}
	reply, err := Render(context.Background(), nil, charts, request)
	if err != nil {
		t.Fatal(err)
	}
	if len(reply.GetCrds()) != 2 || len(reply.GetHooks()) != 1 || len(reply.GetInventory()) != 2 || reply.GetNotes() != "hello 3" ||
		!strings.Contains(reply.GetManifest(), `a: "2"`) || strings.Contains(reply.GetManifest(), crdKind) {
		t.Errorf("%v", reply)
	}
	request.Patches = [][]byte{[]byte(`{"patches":[{"target":{"kind":"ConfigMap"},"patch":"[{\"op\":\"replace\",\"path\":\"/data/a\",\"value\":\"3\"}]"}]}`)}
	if reply, err = Render(context.Background(), nil, charts, request); err != nil || !strings.Contains(reply.GetManifest(), `a: "3"`) {
		t.Errorf("%v %v", reply, err)
	}
	request.Patches = [][]byte{[]byte(`{"patches":[{"target":{"kind":"ConfigMap"},"patch":"[{\"op\":\"remove\",\"path\":\"/none\"}]"}]}`)}
	if _, err = Render(context.Background(), nil, charts, request); !fault.Is(err, enginev1.Fault_RENDER) {
		t.Error(err)
	}
}
