package helm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

func TestWhatIsLeftToOthers(t *testing.T) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	object.SetNamespace("ns")
	object.SetName("web-1")
	for _, c := range []struct {
		rule    *enginev1.Exemption
		pointer string
		left    bool
	}{
		{&enginev1.Exemption{Paths: []string{"/spec/replicas"}}, "/spec/replicas", true},
		{&enginev1.Exemption{Paths: []string{"/spec/replicas"}}, "/spec/replicasMost", false},
		{&enginev1.Exemption{Paths: []string{"/metadata/annotations/"}}, "/metadata/annotations/a", true},
		{&enginev1.Exemption{Paths: []string{"/spec/template"}}, "/spec", false},
		{&enginev1.Exemption{Paths: []string{"/spec/containers/*/image"}}, "/spec/containers/0/image", true},
		{&enginev1.Exemption{Paths: []string{""}}, "/spec/paused", true},
		{&enginev1.Exemption{Paths: []string{""}, Group: "apps", Version: "v1", Kind: "Deploy*", Name: "web-*", Namespace: "ns"}, "/spec", true},
		{&enginev1.Exemption{Paths: []string{""}, Kind: "Service"}, "/spec", false},
		{&enginev1.Exemption{Paths: []string{""}, Name: "db-*"}, "/spec", false},
		{&enginev1.Exemption{Paths: []string{""}, Name: "["}, "/spec", false},
	} {
		k := &kubeClient{around: &enginev1.Around{Leave: []*enginev1.Exemption{c.rule}}}
		if left, err := k.leaves(object, c.pointer); left != c.left || err != nil {
			t.Errorf("%v: %s is not %v (%v)", c.rule, c.pointer, c.left, err)
		}
	}
}

func TestConflictsAreFoundByObject(t *testing.T) {
	info := func(name string) *resource.Info {
		return &resource.Info{Namespace: "ns", Name: name, Mapping: &meta.RESTMapping{
			GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		}}
	}
	list := kube.ResourceList{info("web"), info("web-2")}
	err := fmt.Errorf("conflict occurred while applying object ns/web apps/v1, Kind=Deployment: %w", errors.New("others"))
	if got := (&kubeClient{}).refusedFor(list, err); len(got) != 1 || got[0].Name != "web" {
		t.Errorf("%v", got)
	}
	if len((&kubeClient{}).refusedFor(list, errors.New("server-side apply failed for object ns/web apps/v1, Kind=Deployment"))) != 0 || (&kubeClient{}).refusedFor(list, nil) != nil {
		t.Error("another failure is no conflict")
	}
}

func TestWhoseReplicasAre(t *testing.T) {
	status := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if status == http.StatusOK {
			fmt.Fprint(w, `{"kind":"HorizontalPodAutoscalerList","apiVersion":"autoscaling/v2","items":[
				{"spec":{"scaleTargetRef":{"kind":"Deployment","name":"web"}}}]}`)
			return
		}
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}`, status)
	}))
	defer server.Close()
	at, err := cluster.NewRegistry().Connect(context.Background(), &enginev1.ConnectRequest{
		Credentials: &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config",
			"current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],
			"clusters":[{"name":"c","cluster":{"server":%q}}]}`, server.URL)},
	})
	if err != nil {
		t.Fatal(err)
	}
	k := &kubeClient{run: &run{cluster: at}, around: &enginev1.Around{LeaveScaled: true}}
	for _, c := range []struct {
		status       int
		name, how    string
		left, failed bool
	}{
		{http.StatusOK, "web", "", true, false},
		{http.StatusOK, "other", "", false, false},
		{http.StatusNotFound, "web", "scale", false, false},
		{http.StatusForbidden, "web", "scale", true, false},
		{http.StatusForbidden, "web", "", false, false},
		{http.StatusTooManyRequests, "web", "scale", false, true},
		{http.StatusInternalServerError, "web", "", false, true},
	} {
		live := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(2)}}}
		live.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
		live.SetName(c.name)
		live.SetNamespace("ns")
		live.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: "them", Operation: "Update", Subresource: c.how,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
		}})
		status = c.status
		if left, err := k.leaves(live, replicas); left != c.left || (err != nil) != c.failed {
			t.Errorf("%v: %v %v", c, left, err)
		}
	}
}
