package helm

import (
	"errors"
	"fmt"
	"testing"

	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

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
		if k.leaves(object, c.pointer) != c.left {
			t.Errorf("%v: %s is not %v", c.rule, c.pointer, c.left)
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
	if got := conflicting(list, err); len(got) != 1 || got[0].Name != "web" {
		t.Errorf("%v", got)
	}
	if len(conflicting(list, errors.New("server-side apply failed for object ns/web apps/v1, Kind=Deployment"))) != 0 || conflicting(list, nil) != nil {
		t.Error("another failure is no conflict")
	}
}
