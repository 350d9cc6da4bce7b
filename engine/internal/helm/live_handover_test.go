//go:build live

package helm

import (
	"context"
	"maps"
	"slices"
	"testing"

	"helm.sh/helm/v4/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilothouse-dev/pilothouse/engine/internal/drift"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

const keptTemplate = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels: {{ .Values.labels | toJson }}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: main, image: {{ .Values.image }}, env: {{ .Values.env | toJson }}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {message: {{ .Values.image }}}
`

// asAnother runs Helm's own code as a program of that name has it do.
func (l *live) asAnother(program string, requests ...*enginev1.RunRequest) {
	l.Helper()
	kube.ManagedFieldsManager = program
	defer func() { kube.ManagedFieldsManager = fieldManager }()
	for _, one := range requests {
		l.good(one)
	}
}

func (l *live) deployment() *appsv1.Deployment {
	l.Helper()
	found, err := l.cluster.Clientset().AppsV1().Deployments(l.namespace).Get(context.Background(), "app", metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	return found
}

// appliers are the managers that applied the Deployment.
func (l *live) appliers() []string {
	l.Helper()
	found := map[string]bool{}
	for _, one := range l.deployment().ManagedFields {
		if one.Operation == metav1.ManagedFieldsOperationApply {
			found[one.Manager] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func kept(action enginev1.RunRequest_Action, digest, image string, more bool) *enginev1.RunRequest {
	values := map[string]any{"image": "registry.example/" + image, "labels": map[string]any{}, "env": []any{}}
	if more {
		values["labels"] = map[string]any{"tier": "front"}
		values["env"] = []any{map[string]any{"name": "DEBUG", "value": "yes"}}
	}
	return &enginev1.RunRequest{Action: action, Name: "app", ChartDigest: digest, Values: object(values)}
}

func stamped(request *enginev1.RunRequest) *enginev1.RunRequest {
	request.StampOwner, request.Preflight = "me", true
	request.Around = &enginev1.Around{} // nothing is forced
	return request
}

func TestLiveHandover(t *testing.T) {
	l := newLive(t, true)
	digest := l.put(pack(t, map[string]string{"templates/all.yaml": keptTemplate}))
	l.asAnother("provider-helm", kept(enginev1.RunRequest_INSTALL, digest, "app:1", true))
	if got := l.appliers(); !slices.Equal(got, []string{"provider-helm"}) {
		t.Fatalf("%v", got)
	}
	remembered := map[inventory.Ref]drift.Trace{}
	l.Cleanup(l.cluster.Inventories.Listen(inventory.Listener{
		Put:     func(string, string, int) {},
		Applied: func(_, _ string, _ int, traces map[inventory.Ref]drift.Trace) { maps.Copy(remembered, traces) },
	}))
	for _, one := range l.compare(1) {
		if one.GetFault() != nil || one.GetMissing() || len(one.GetDifferences()) > 0 {
			t.Errorf("%v", one)
		}
	}
	if len(remembered) != 2 {
		t.Errorf("what another keeper applied is as applied: %v", remembered)
	}

	// A preflight that refuses leaves the release foreign; what was taken over by then is taken over.
	refused := stamped(kept(enginev1.RunRequest_UPGRADE, digest, "app:2", true))
	refused.Values = object(map[string]any{"image": "x", "labels": map[string]any{"tier": "not a label!"}, "env": []any{}})
	if out := l.bad(refused, enginev1.Fault_REJECTED, "Deployment app"); out.GetRecord().GetRevision() != 1 {
		t.Errorf("%v", out.GetRecord())
	}

	l.asked()
	l.good(stamped(kept(enginev1.RunRequest_UPGRADE, digest, "app:2", false)))
	first := l.asked()
	after := l.deployment()
	container := after.Spec.Template.Spec.Containers[0]
	if container.Image != "registry.example/app:2" || len(container.Env) > 0 || after.Labels["tier"] != "" {
		t.Errorf("what was changed or taken out of the values stayed: %v %v", container, after.Labels)
	}
	if got := l.appliers(); !slices.Equal(got, []string{"helm"}) {
		t.Errorf("%v", got)
	}
	l.asked()
	l.good(stamped(kept(enginev1.RunRequest_UPGRADE, digest, "app:3", false)))
	if second := l.asked(); len(first) != len(second)+2 {
		t.Errorf("an upgrade of ours costs nothing for what was handed over: %v, then %v", first, second)
	}
}

func TestLiveHandoverOfTheRest(t *testing.T) {
	l := newLive(t, false)
	digest := l.put(pack(t, map[string]string{"templates/all.yaml": keptTemplate}))
	l.asAnother("helm-controller", kept(enginev1.RunRequest_INSTALL, digest, "app:1", true))
	by := kept(enginev1.RunRequest_UPGRADE, digest, "app:2", true)
	by.ForceConflicts = true
	l.asAnother("provider-helm", by)
	if got := l.appliers(); !slices.Equal(got, []string{"helm", "provider-helm"}) {
		t.Fatalf("Flux's is handed over already, the other's comes after: %v", got)
	}
	deployment := &enginev1.Ref{ApiVersion: "apps/v1", Kind: "Deployment", Namespace: l.namespace, Name: "app"}
	if err := l.repair(2, &enginev1.RepairRequest_Part{Ref: deployment}); err != nil {
		t.Fatal(err)
	}
	if got := l.appliers(); !slices.Equal(got, []string{"helm"}) {
		t.Errorf("a repair leaves what others applied: %v", got)
	}
	l.good(stamped(&enginev1.RunRequest{Action: enginev1.RunRequest_ROLLBACK, Name: "app", Revision: 1}))
	if got := l.deployment().Spec.Template.Spec.Containers[0].Image; got != "registry.example/app:1" {
		t.Errorf("%s", got)
	}
	l.good(stamped(kept(enginev1.RunRequest_UPGRADE, digest, "app:3", false)))
	if got := l.deployment(); got.Labels["tier"] != "" {
		t.Errorf("%v", got.Labels)
	}

	// The record of an install that broke off is gone, its objects are there and are adopted.
	if err := l.cluster.Clientset().CoreV1().Secrets(l.namespace).DeleteCollection(context.Background(),
		metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "owner=helm"}); err != nil {
		t.Fatal(err)
	}
	l.asAnother("provider-helm", kept(enginev1.RunRequest_INSTALL, digest, "app:3", true))
	if err := l.cluster.Clientset().CoreV1().Secrets(l.namespace).DeleteCollection(context.Background(),
		metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "owner=helm"}); err != nil {
		t.Fatal(err)
	}
	l.good(&enginev1.RunRequest{
		Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: digest, StampOwner: "me",
		Values: kept(enginev1.RunRequest_INSTALL, digest, "app:3", false).GetValues(),
	})
	if got := l.appliers(); !slices.Equal(got, []string{"helm"}) || l.deployment().Labels["tier"] != "" {
		t.Errorf("an adoption leaves what another applied: %v %v", got, l.deployment().Labels)
	}
}
