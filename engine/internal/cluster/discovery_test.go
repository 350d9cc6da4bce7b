package cluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestMissingKindRefreshesOnceInAWhile(t *testing.T) {
	fake := &clienttesting.Fake{}
	fake.Resources = []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "configmaps", Kind: "ConfigMap", Namespaced: true},
	}}}
	now := time.Now()
	cached := newCachedDiscovery(&fakediscovery.FakeDiscovery{Fake: fake})
	cached.now = func() time.Time { return now }
	m := &mapper{discovery: cached}
	widget := schema.GroupKind{Group: "example.org", Kind: "Widget"}
	asked := func(want bool) {
		t.Helper()
		before := len(fake.Actions())
		_, err := m.RESTMapping(widget, "v1")
		if err == nil {
			t.Fatal("found a kind that does not exist")
		}
		if got := len(fake.Actions()) > before; got != want {
			t.Fatalf("asked the server: %v, want %v", got, want)
		}
	}
	asked(true)
	asked(false)
	cached.Invalidate() // Helm's, a moment later: not heard
	asked(false)
	now = now.Add(2 * refreshEvery)
	asked(true)
	fake.Resources = append(fake.Resources, &metav1.APIResourceList{GroupVersion: "example.org/v1", APIResources: []metav1.APIResource{
		{Name: "widgets", Kind: "Widget"},
	}})
	asked(false)
	cached.force()
	if _, err := m.RESTMapping(widget, "v1"); err != nil {
		t.Fatalf("a forced refresh must be heard: %v", err)
	}
}
