package helm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// server answers like an API server that has one Job with two pods, and a kubelet behind it.
func server(t *testing.T, log string, asked *string) *cluster.Cluster {
	pod := func(name string, minute int) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"name": name, "creationTimestamp": time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC).Format(time.RFC3339)},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "side"}, map[string]any{"name": "main"}}},
			"status": map[string]any{"containerStatuses": []any{
				map[string]any{"name": "side", "state": map[string]any{"terminated": map[string]any{"exitCode": 0}}},
				map[string]any{"name": "main", "state": map[string]any{"terminated": map[string]any{"exitCode": 1}}},
			}},
		}
	}
	handler := http.NewServeMux()
	handler.HandleFunc("/api/v1/namespaces/ns/pods", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		items := []any{pod("migrate-old", 1), pod("migrate-new", 2)}
		if r.URL.Query().Get("labelSelector") != jobLabel+"=migrate" {
			items = nil
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "PodList", "items": items})
	})
	handler.HandleFunc("/api/v1/namespaces/ns/pods/migrate-new/log", func(w http.ResponseWriter, r *http.Request) {
		*asked = r.URL.RawQuery
		if log == "" {
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the node is away","code":500}`, http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, log)
	})
	listening := httptest.NewServer(handler)
	t.Cleanup(listening.Close)
	config := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": [{"name": "c", "context": {"cluster": "c"}}],
		"clusters": [{"name": "c", "cluster": {"server": %q}}]}`, listening.URL)
	at, err := cluster.NewRegistry().Connect(context.Background(), &enginev1.ConnectRequest{
		Credentials: &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: []byte(config)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func logsOf(t *testing.T, job, log string) ([]*enginev1.HookLog, string) {
	var asked string
	request := &enginev1.RunRequest{Namespace: "ns", Name: "app"}
	a := newRun(context.Background(), server(t, log, &asked), request, nil, nil)
	logs := newHookLogs(a.kube, kube.ResourceList{{
		Namespace: "ns", Name: job,
		Mapping: &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}},
	}, {
		Namespace: "ns", Name: "settings",
		Mapping: &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}},
	}})
	logs.keepAll()
	logs.keepAll() // what has been read is kept as it was
	return logs.kept(), asked
}

func TestAJobIsDoomedBeforeItFails(t *testing.T) {
	job := func(kind, status string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "batch/v1", "kind": "Job",
			"status": map[string]any{"conditions": []any{map[string]any{"type": kind, "status": status}}},
		}}
	}
	if !doomed(job("FailureTarget", "True")) {
		t.Error("its pods are about to go")
	}
	for _, one := range []*unstructured.Unstructured{
		job("FailureTarget", "False"), job("SuccessCriteriaMet", "True"), job("Failed", "True"), {},
	} {
		if doomed(one) {
			t.Errorf("got doomed for %v", one)
		}
	}
	if v, _ := completion(job("FailureTarget", "True")); v != pending {
		t.Error("it has failed when Kubernetes says so")
	}
}

func TestTheCulpritMayBeAboutToStartAgain(t *testing.T) {
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "first"}, {Name: "second"}}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "first", LastTerminationState: ended(0)},
		{Name: "second", LastTerminationState: ended(1), State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}},
	}
	if got := culprit(pod); got != "second" {
		t.Errorf("got %s", got)
	}
}

func TestTheLastLinesOfAFailedHookAreKept(t *testing.T) {
	var long strings.Builder
	for i := range 30 {
		fmt.Fprintf(&long, "line %d\n", i)
	}
	logs, asked := logsOf(t, "migrate", long.String())
	if len(logs) != 1 || logs[0].GetHook() != "Job migrate" {
		t.Fatalf("got %v", logs)
	}
	text := logs[0].GetText()
	if !strings.HasPrefix(text, "line 10\n") || !strings.HasSuffix(text, "\nline 29") {
		t.Errorf("got %q", text)
	}
	if !strings.Contains(asked, "container=main") || !strings.Contains(asked, "tailLines=20") {
		t.Errorf("asked for %s", asked)
	}
	if logs, _ = logsOf(t, "migrate", strings.Repeat("é", 3*logBytes)); strings.Contains(logs[0].GetText(), "é") {
		t.Errorf("kept a part of a line: %d bytes", len(logs[0].GetText()))
	}
	cut := "password: " + strings.Repeat("x", logBytes) + "\nlast\n"
	if logs, _ = logsOf(t, "migrate", cut); logs[0].GetText() != "last" {
		t.Errorf("got %d bytes", len(logs[0].GetText()))
	}
}

func TestALogThatCannotBeReadSaysWhy(t *testing.T) {
	logs, _ := logsOf(t, "migrate", "")
	if len(logs) != 1 || logs[0].GetText() != "" || !strings.Contains(logs[0].GetMissing(), "the node is away") {
		t.Errorf("got %v", logs)
	}
	if logs, _ = logsOf(t, "other", "x"); len(logs) != 1 || logs[0].GetMissing() != "it has no pod" {
		t.Errorf("got %v", logs)
	}
}
