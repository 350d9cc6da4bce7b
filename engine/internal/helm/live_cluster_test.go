//go:build live

package helm

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

func TestLiveFaults(t *testing.T) {
	l := newLive(t, false)
	broken := func(template string) *enginev1.RunRequest {
		return &enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: l.put(pack(t, map[string]string{
			"templates/x.yaml": template, "templates/_h.tpl": `{{ define "h" }}{{ .Values.a.b.c }}{{ end }}`,
			"values.schema.json": `{"properties":{"replicas":{"type":"integer"},"name":{"pattern":"^a$"}}}`,
		}))}
	}
	for _, row := range []struct {
		template string
		kind     enginev1.Fault_Kind
		says     string
	}{
		{"a: 1\n{{ .Values.a.b.c }}", enginev1.Fault_RENDER, "templates/x.yaml:2:10: "},
		{"\n{{ include \"h\" . }}", enginev1.Fault_RENDER, "templates/_h.tpl:1:"},
		{"{{ fail \"not today\" }}", enginev1.Fault_RENDER, "not today"},
		{"{{ if }}", enginev1.Fault_RENDER, "templates/x.yaml:1"},
		{"a: [", enginev1.Fault_RENDER, "templates/x.yaml"},
		{"apiVersion: nobody.example/v1\nkind: Thing\nmetadata: {name: x}", enginev1.Fault_REJECTED, `no matches for kind "Thing"`},
		{"apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {ports: [{port: 99999}]}", enginev1.Fault_REJECTED, `Service x`},
		{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nnonsense: 1", enginev1.Fault_REJECTED, "nonsense"},
		{"apiVersion: v1\nmetadata: {name: secret-thing}", enginev1.Fault_REJECTED, "Kind"},
	} {
		outcome := l.bad(broken(row.template), row.kind, row.says)
		if outcome.GetRecord() != nil {
			l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Name: "app"})
		}
	}
	schema := broken("")
	schema.Values = object(map[string]any{"replicas": "many", "name": "hunter2"})
	if out := l.bad(schema, enginev1.Fault_VALUES, "replicas: got string, want integer", "name:"); strings.Contains(out.GetFault().GetMessage(), "hunter2") {
		t.Error("a value in a message")
	}
	preflight := broken("apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {ports: [{port: 99999}]}")
	preflight.Preflight = true
	if out := l.bad(preflight, enginev1.Fault_REJECTED, `Service x`); out.GetRecord() != nil {
		t.Error("preflight makes no record")
	}
	elsewhere := broken("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}")
	elsewhere.Namespace = "no-such-namespace"
	out, err := l.runner.Run(context.Background(), l.cluster, elsewhere, nil)
	if err != nil || out.GetFault().GetKind() != enginev1.Fault_NAMESPACE_MISSING {
		t.Errorf("%v %v", out, err)
	}
	l.good(broken("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}"))
	l.bad(broken("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}"), enginev1.Fault_ALREADY_EXISTS)
	other := broken("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}")
	other.Name = "other"
	l.bad(other, enginev1.Fault_ALREADY_EXISTS, "ConfigMap")
	l.bad(&enginev1.RunRequest{Action: enginev1.RunRequest_ROLLBACK, Name: "app", Revision: 7}, enginev1.Fault_NOT_FOUND)
}

func TestLiveTerminatingNamespace(t *testing.T) {
	l := newLive(t, false)
	ctx := context.Background()
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}}}
	if _, err := l.cluster.Clientset().CoreV1().ConfigMaps(l.namespace).Create(ctx, held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_, _ = l.cluster.Clientset().CoreV1().ConfigMaps(l.namespace).Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	}()
	if err := l.cluster.Clientset().CoreV1().Namespaces().Delete(ctx, l.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	l.bad(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: l.put(tiny(t))}, enginev1.Fault_NAMESPACE_TERMINATING)
}

func TestLiveHooks(t *testing.T) {
	l := newLive(t, false)
	hook := func(events, command string) map[string]string {
		return map[string]string{"templates/hook.yaml": `apiVersion: batch/v1
kind: Job
metadata: {name: {{ .Release.Name }}-hook, annotations: {helm.sh/hook: "` + events + `"}}
spec:
  backoffLimit: 0
  template: {` + command + `spec: {restartPolicy: Never, containers: [{name: main, image: registry.example/x}]}}
`, "templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"}
	}
	good := l.put(pack(t, hook("pre-install,pre-upgrade,post-delete", "")))
	ran := func(outcome *enginev1.Outcome, want string) {
		t.Helper()
		var told []string
		for _, one := range outcome.GetHooks() {
			told = append(told, fmt.Sprint(one.GetHook(), one.GetEvents(), one.GetPhase()))
		}
		if got := strings.Join(told, ", "); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
	ran(l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "hooked", ChartDigest: good, TimeoutMs: 30_000}),
		"Job hooked-hook[pre-install]Succeeded")
	ran(l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "hooked", ChartDigest: good, TimeoutMs: 30_000}),
		"Job hooked-hook[pre-upgrade]Succeeded")
	// A rollback whose hook cannot end leaves `pending-rollback` in Helm.
	never := l.put(pack(t, hook("pre-rollback", "metadata: {annotations: {x: never}}, ")))
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "never", ChartDigest: never})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	outcome, err := l.runner.Run(ctx, l.cluster, &enginev1.RunRequest{Action: enginev1.RunRequest_ROLLBACK, Namespace: l.namespace, Name: "never", Revision: 1, TimeoutMs: 30_000},
		func(progress *enginev1.Progress) {
			if progress.GetPhase() == enginev1.Progress_WAITING {
				if hooks := progress.GetHooks(); len(hooks) != 1 || hooks[0].GetStartedUnixMs() == 0 || hooks[0].GetFinishedUnixMs() != 0 {
					t.Errorf("one hook runs: %v", hooks)
				}
				cancel()
			}
		})
	if err != nil || outcome.GetFault().GetKind() != enginev1.Fault_CANCELLED || outcome.GetRecord().GetStatus() != "failed" || outcome.GetRecord().GetRevision() != 2 {
		t.Errorf("%v %v", outcome, err)
	}
	ran(outcome, "Job never-hook[pre-rollback]Failed")
	ran(l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_ROLLBACK, Name: "hooked", Revision: 1, TimeoutMs: 30_000}), "")
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Name: "hooked", TimeoutMs: 30_000})
}

func TestLiveCRDs(t *testing.T) {
	l := newLive(t, false)
	group := fmt.Sprintf("g%d.example.com", time.Now().UnixNano())
	crd := func(plural, kind string) string {
		return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[3]s}
spec:
  group: %[3]s
  scope: Namespaced
  names: {plural: %[1]s, singular: %[4]s, kind: %[2]s}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, plural, kind, group, strings.ToLower(kind))
	}
	with := pack(t, map[string]string{
		"crds/one.yaml":      crd("ones", "One"),
		"templates/two.yaml": crd("twos", "Two"),
		"templates/x.yaml":   fmt.Sprintf("apiVersion: %[1]s/v1\nkind: One\nmetadata: {name: x}\n---\napiVersion: %[1]s/v1\nkind: Two\nmetadata: {name: x}\n", group),
	})
	without := pack(t, map[string]string{"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"})
	crds := l.cluster.Dynamic().Resource(crdResource)
	ctx := context.Background()
	out := l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: l.put(with)})
	if len(out.GetInventory()) != 2 {
		t.Errorf("%v", out)
	}
	// A custom resource nobody installed, to see that nothing takes the CRD away under it.
	mine := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Two", "metadata": map[string]any{"name": "mine"}}}
	twos := l.cluster.Dynamic().Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "twos"}).Namespace(l.namespace)
	if _, err := twos.Create(ctx, mine, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: l.put(without)})
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_ROLLBACK, Name: "app", Revision: 1})
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: l.put(with)})
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Name: "app"})
	for _, plural := range []string{"ones", "twos"} {
		live, err := crds.Get(ctx, plural+"."+group, metav1.GetOptions{})
		if err != nil || len(live.GetAnnotations()) > 0 || len(live.GetLabels()) > 0 {
			t.Errorf("%s: %v %v", plural, live, err)
		}
	}
	if _, err := twos.Get(ctx, "mine", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	// The kind goes, and the release that had it can still be removed.
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: l.put(with)})
	for _, plural := range []string{"ones", "twos"} {
		if err := crds.Delete(ctx, plural+"."+group, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for l.cluster.InvalidateDiscovery(); ; l.cluster.InvalidateDiscovery() {
		if _, err := l.cluster.Mapper().RESTMapping(schema.GroupKind{Group: group, Kind: "One"}); err != nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Name: "app"})
}
