package helm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pilothouse-dev/pilothouse/engine/internal/chart"
	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// These tests need a real API server: set PILOTHOUSE_TEST_KUBECONFIG to one they may fill with namespaces.
type live struct {
	*testing.T
	cluster   *cluster.Cluster
	runner    *Runner
	namespace string
	mutex     sync.Mutex
	requests  []string // what the engine asked the API server, if counted
}

func newLive(t *testing.T, counted bool) *live {
	t.Helper()
	path := os.Getenv("PILOTHOUSE_TEST_KUBECONFIG")
	if path == "" {
		t.Skip("PILOTHOUSE_TEST_KUBECONFIG is not set")
	}
	kubeconfig, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l := &live{T: t}
	if counted {
		kubeconfig = l.count(kubeconfig)
	}
	l.cluster, err = cluster.NewRegistry().Connect(context.Background(), &enginev1.ConnectRequest{
		Credentials: &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: kubeconfig}, Trusted: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	charts, err := chart.New(chart.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	l.runner = NewRunner(charts)
	l.namespace = fmt.Sprintf("engine-%d", time.Now().UnixNano())
	_, err = l.cluster.Clientset().CoreV1().Namespaces().Create(context.Background(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.cluster.Clientset().CoreV1().Namespaces().Delete(context.Background(), l.namespace, metav1.DeleteOptions{})
	})
	if _, err := l.cluster.Capabilities(context.Background()); err != nil {
		t.Fatal(err)
	}
	return l
}

// count puts a proxy before the API server that notes every request.
func (l *live) count(kubeconfig []byte) []byte {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		l.Fatal(err)
	}
	round, err := rest.TransportFor(config)
	if err != nil {
		l.Fatal(err)
	}
	home, err := url.Parse(config.Host)
	if err != nil {
		l.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(home)
	proxy.Transport = round
	proxy.FlushInterval = -1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mutex.Lock()
		l.requests = append(l.requests, r.Method+" "+r.URL.Path)
		l.mutex.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	l.Cleanup(server.Close)
	return []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"` +
		server.URL + `"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":""}}]}`)
}

func (l *live) asked() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	out := l.requests
	l.requests = nil
	return out
}

func (l *live) put(packed []byte) string {
	l.Helper()
	info, err := l.runner.Charts.Put(packed)
	if err != nil {
		l.Fatal(err)
	}
	return info.Digest
}

func (l *live) run(request *enginev1.RunRequest) *enginev1.Outcome {
	l.Helper()
	request.Namespace = l.namespace
	outcome, err := l.runner.Run(context.Background(), l.cluster, request, nil)
	if err != nil {
		l.Fatal(err)
	}
	return outcome
}

func (l *live) good(request *enginev1.RunRequest) *enginev1.Outcome {
	l.Helper()
	outcome := l.run(request)
	if outcome.GetFault() != nil {
		l.Fatalf("%s: %s", request.GetAction(), outcome.GetFault())
	}
	return outcome
}

func (l *live) bad(request *enginev1.RunRequest, kind enginev1.Fault_Kind, words ...string) *enginev1.Outcome {
	l.Helper()
	outcome := l.run(request)
	if outcome.GetFault() == nil || outcome.GetFault().GetKind() != kind {
		l.Fatalf("%s: got %v, want %s", request.GetAction(), outcome.GetFault(), kind)
	}
	for _, word := range words {
		if !strings.Contains(outcome.GetFault().GetMessage(), word) {
			l.Errorf("%q does not say %q", outcome.GetFault().GetMessage(), word)
		}
	}
	l.Log(outcome.GetFault().GetMessage())
	return outcome
}

const tinyTemplate = `apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {message: {{ .Values.message | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app: {{ .Release.Name }}}, clusterIP: None, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      serviceAccountName: {{ .Release.Name }}
      containers: [{name: main, image: {{ .Values.image }}}]
`

const tinyValues = "replicas: 1\nimage: registry.example/app:1\nmessage: hello\n"

func tiny(t *testing.T) []byte {
	return pack(t, map[string]string{"values.yaml": tinyValues, "templates/all.yaml": tinyTemplate, "templates/NOTES.txt": "hi {{ .Release.Name }}"})
}

func object(values any) []byte {
	out, _ := json.Marshal(values)
	return out
}

func TestLiveLife(t *testing.T) {
	l := newLive(t, true)
	digest := l.put(tiny(t))
	l.asked()
	stamp := strings.Repeat("a", 40)
	first := l.good(&enginev1.RunRequest{
		Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: digest, StampDigest: stamp, StampOwner: "me", MaxHistory: 3,
	})
	asked := l.asked()
	t.Logf("install: %d requests\n%s", len(asked), strings.Join(asked, "\n"))
	if len(asked) != 11 {
		t.Error("an install makes 1 list, 4 GET, 4 PATCH, 1 create and 1 update")
	}
	record := first.GetRecord()
	if record.GetStatus() != "deployed" || record.GetRevision() != 1 || record.GetStampDigest() != stamp || record.GetStampOwner() != "me" ||
		record.GetChartName() != "demo" || record.GetUid() == "" || len(first.GetInventory()) != 4 || first.GetNotes() != "hi app" {
		t.Errorf("%v", first)
	}
	second := l.good(&enginev1.RunRequest{
		Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest, StampDigest: strings.Repeat("b", 40), StampOwner: "me",
		Values: object(map[string]any{"message": "two"}), MaxHistory: 3,
	})
	asked = l.asked()
	t.Logf("upgrade: %d requests\n%s", len(asked), strings.Join(asked, "\n"))
	if second.GetRecord().GetRevision() != 2 || second.GetRecord().GetStampDigest() != strings.Repeat("b", 40) {
		t.Errorf("%v", second)
	}
	history, err := History(context.Background(), l.cluster, &enginev1.HistoryRequest{Namespace: l.namespace, Name: "app", WithConfig: true})
	if err != nil || len(history) != 2 || history[0].GetStatus() != "superseded" || history[0].GetStampDigest() != stamp || string(history[1].GetConfig()) != `{"message":"two"}` {
		t.Errorf("a superseded record keeps its stamp: %v %v", history, err)
	}
	l.asked()
	third := l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_ROLLBACK, Name: "app", Revision: 1, StampDigest: stamp, Description: "back", MaxHistory: 3})
	t.Logf("rollback: %d requests", len(l.asked()))
	if third.GetRecord().GetRevision() != 3 || third.GetRecord().GetStampDigest() != stamp || third.GetRecord().GetDescription() != "back" || len(third.GetInventory()) != 4 {
		t.Errorf("%v", third)
	}
	for i := range 3 {
		l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest, MaxHistory: 3, Values: object(map[string]any{"message": fmt.Sprint(i)})})
	}
	history, err = History(context.Background(), l.cluster, &enginev1.HistoryRequest{Namespace: l.namespace, Name: "app"})
	if err != nil || len(history) != 3 || history[2].GetRevision() != 6 {
		t.Errorf("history is bounded: %v %v", history, err)
	}
	l.asked()
	gone := l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Name: "app"})
	asked = l.asked()
	t.Logf("uninstall: %d requests\n%s", len(asked), strings.Join(asked, "\n"))
	if gone.GetRecord() != nil {
		t.Errorf("%v", gone)
	}
	if out := l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Name: "app"}); out.GetRecord() != nil {
		t.Error("uninstalling nothing succeeds")
	}
}

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

func TestLiveWaitAndCancel(t *testing.T) {
	l := newLive(t, false)
	stuck := pack(t, map[string]string{"templates/x.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: stuck}
spec:
  selector: {matchLabels: {app: stuck}}
  template:
    metadata: {labels: {app: stuck}}
    spec: {nodeSelector: {no: where}, containers: [{name: main, image: registry.example/x}]}
`})
	request := &enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Namespace: l.namespace, Name: "stuck", ChartDigest: l.put(stuck), Wait: true, TimeoutMs: 60_000}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var phases []enginev1.Progress_Phase
	outcome, err := l.runner.Run(ctx, l.cluster, request, func(phase enginev1.Progress_Phase, _ string) {
		phases = append(phases, phase)
		if phase == enginev1.Progress_WAITING {
			busy := l.run(&enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Name: "stuck"})
			if busy.GetFault().GetKind() != enginev1.Fault_BUSY {
				t.Errorf("%v", busy)
			}
			cancel()
		}
	})
	if err != nil || outcome.GetFault().GetKind() != enginev1.Fault_CANCELLED || outcome.GetRecord().GetStatus() != "failed" {
		t.Errorf("%v %v", outcome, err)
	}
	if fmt.Sprint(phases) != "[PREPARING APPLYING WAITING]" {
		t.Error(phases)
	}
	l.bad(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "stuck", ChartDigest: request.GetChartDigest(), Wait: true, TimeoutMs: 500},
		enginev1.Fault_TIMEOUT, "Deployment stuck")
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "stuck", ChartDigest: l.put(tiny(t)), Wait: true, TimeoutMs: 30_000})
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
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "hooked", ChartDigest: good, TimeoutMs: 30_000})
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "hooked", ChartDigest: good, TimeoutMs: 30_000})
	// A rollback whose hook cannot end leaves `pending-rollback` in Helm.
	never := l.put(pack(t, hook("pre-rollback", "metadata: {annotations: {x: never}}, ")))
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "never", ChartDigest: never})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	outcome, err := l.runner.Run(ctx, l.cluster, &enginev1.RunRequest{Action: enginev1.RunRequest_ROLLBACK, Namespace: l.namespace, Name: "never", Revision: 1, TimeoutMs: 30_000},
		func(phase enginev1.Progress_Phase, _ string) {
			if phase == enginev1.Progress_WAITING {
				cancel()
			}
		})
	if err != nil || outcome.GetFault().GetKind() != enginev1.Fault_CANCELLED || outcome.GetRecord().GetStatus() != "failed" || outcome.GetRecord().GetRevision() != 2 {
		t.Errorf("%v %v", outcome, err)
	}
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

func TestLiveUninstallWaits(t *testing.T) {
	l := newLive(t, false)
	ctx := context.Background()
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: l.put(tiny(t))})
	maps := l.cluster.Clientset().CoreV1().ConfigMaps(l.namespace)
	if _, err := maps.Patch(ctx, "app", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/hold"]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	out := l.bad(&enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Name: "app", TimeoutMs: 500}, enginev1.Fault_TIMEOUT, "ConfigMap app", "example.com/hold")
	if out.GetRecord().GetStatus() != "uninstalling" {
		t.Errorf("%v", out)
	}
	released := make(chan struct{})
	outcome, err := l.runner.Run(ctx, l.cluster, &enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Namespace: l.namespace, Name: "app", TimeoutMs: 30_000},
		func(phase enginev1.Progress_Phase, _ string) {
			if phase == enginev1.Progress_WAITING {
				go func() {
					_, _ = maps.Patch(ctx, "app", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
					close(released)
				}()
			}
		})
	<-released
	if err != nil || outcome.GetFault() != nil || outcome.GetRecord() != nil {
		t.Errorf("%v %v", outcome, err)
	}
}

func TestLiveUnlockAndPatches(t *testing.T) {
	l := newLive(t, false)
	ctx := context.Background()
	digest := l.put(tiny(t))
	secrets := l.cluster.Clientset().CoreV1().Secrets(l.namespace)
	patch := []byte(`{patches: [{target: {kind: ConfigMap}, patch: "[{\"op\": \"add\", \"path\": \"/data/added\", \"value\": \"yes\"}]"}]}`)
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: digest, Patches: [][]byte{patch}, StampDigest: "x"})
	live, err := l.cluster.Clientset().CoreV1().ConfigMaps(l.namespace).Get(ctx, "app", metav1.GetOptions{})
	if err != nil || live.Data["added"] != "yes" {
		t.Errorf("%v %v", live, err)
	}
	if out := l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UNLOCK, Name: "app", Revision: 1}); out.GetRecord().GetStatus() != "deployed" {
		t.Error("a record that is not pending is left alone")
	}
	pend := func(name string, revision int, status string) {
		a := newRun(ctx, l.cluster, &enginev1.RunRequest{Namespace: l.namespace, Name: name}, nil, nil)
		rel, err := a.records.release(revision)
		if err != nil {
			t.Fatal(err)
		}
		rel.Info.Status = statusOf(status)
		if err := a.records.Update(recordName(name, revision), rel); err != nil {
			t.Fatal(err)
		}
	}
	pend("app", 1, "pending-install")
	l.bad(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest}, enginev1.Fault_BUSY)
	if out := l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UNLOCK, Name: "app", Revision: 1}); out.GetRecord() != nil {
		t.Errorf("%v", out)
	}
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: digest})
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest, StampDigest: "y"})
	pend("app", 2, "pending-upgrade")
	out := l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UNLOCK, Name: "app", Revision: 2})
	if out.GetRecord().GetStatus() != "failed" || out.GetRecord().GetStampDigest() != "y" {
		t.Errorf("%v", out)
	}
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest})
	if list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: "owner=helm,status=deployed"}); err != nil || len(list.Items) != 1 {
		t.Errorf("%d deployed, %v", len(list.Items), err)
	}
}

// TestLiveHundred measures; it fails only when an install does.
func TestLiveHundred(t *testing.T) {
	l := newLive(t, false)
	digest := l.put(tiny(t))
	measure := func(action enginev1.RunRequest_Action, values any) {
		var before, after syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
		start := time.Now()
		var all sync.WaitGroup
		slots := make(chan struct{}, 20)
		for i := range 100 {
			all.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				out, err := l.runner.Run(context.Background(), l.cluster, &enginev1.RunRequest{
					Action: action, Namespace: l.namespace, Name: fmt.Sprintf("app-%d", i), ChartDigest: digest,
					Values: object(values), MaxHistory: 10, StampDigest: strings.Repeat("a", 40),
				}, nil)
				if err != nil || out.GetFault() != nil {
					t.Errorf("%v %v", out.GetFault(), err)
				}
			})
		}
		all.Wait()
		took := time.Since(start)
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		cpu := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
		t.Logf("100 x %s: %s, %s CPU", action, took.Round(time.Millisecond), cpu.Round(time.Millisecond))
	}
	measure(enginev1.RunRequest_INSTALL, map[string]any{})
	measure(enginev1.RunRequest_UPGRADE, map[string]any{"message": "two"})
	measure(enginev1.RunRequest_UNINSTALL, map[string]any{})
}
