package observe

import (
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// Half of a release's objects are Deployments, half are ConfigMaps; namespaces hold some releases each. Of so many an
// object costs the most: the maps have just grown.
const (
	watchedReleases, ofEachKind, namespaces = 400, 5, 60

	watchedObjects = watchedReleases * ofEachKind * 2
	most           = 1024
)

func TestAnObjectCostsAtMostAKibibyte(t *testing.T) {
	server := httptest.NewServer(&guarded{})
	defer server.Close()
	eyes := newObserver(connect(t, server.URL))
	before := heap()
	hands := &fakeHands{inventories: map[int][]inventory.Ref{}}
	m := newModel(hands)
	eyes.model = m
	m.scalersSeen("", true)
	m.replaceRecords("", nil)
	reader := m.subscribe()
	for i := range watchedReleases {
		r := rec(1, "deployed")
		r.release = releaseKey{intern(namespaceOf(i)), fmt.Sprint("app-", i)}
		m.attentions[r.release] = &attention{said: &enginev1.Attention{}}
		m.putRecord(r)
		m.setInventory(r, inventoryOf(i), "")
	}
	fill(eyes, deployments, "deployments", deploymentAsHelmLeavesIt)
	fill(eyes, configMaps, "configmaps", configMapAsHelmLeavesIt)
	if told := statesTold(reader); told != watchedObjects {
		t.Fatalf("%d of %d objects are known", told, watchedObjects)
	}
	for _, one := range m.releases[releaseKey{namespaceOf(0), "app-0"}].members {
		if one.state.trace.Own == 0 || one.state.label != labelThere {
			t.Fatalf("of %s too little is kept: %+v", one.key.name, one.state)
		}
	}
	hands.asked = nil
	each := (heap() - before) / watchedObjects
	t.Logf("%d bytes per object", each)
	if each > most {
		t.Errorf("an object costs %d bytes, want at most %d", each, most)
	}
	runtime.KeepAlive(eyes)
	runtime.KeepAlive(reader)
}

// statesTold counts the objects that a reader is told to be as they should.
func statesTold(reader *Subscription) int {
	count := 0
	for batch := reader.take(); batch != nil; batch = reader.take() {
		for _, objects := range batch.GetObjects() {
			for _, one := range objects.GetStates() {
				if one.GetState() == enginev1.ObjectState_CURRENT {
					count++
				}
			}
		}
	}
	return count
}

func namespaceOf(release int) string { return fmt.Sprintf("team-%d-production", release%namespaces) }

func workloadOf(release, number int) string {
	return fmt.Sprintf("app-%d-component-with-a-long-name-%d", release, number)
}

func inventoryOf(release int) []inventory.Ref {
	refs := make([]inventory.Ref, 0, 2*ofEachKind)
	for number := range ofEachKind {
		namespace, name := namespaceOf(release), workloadOf(release, number)
		refs = append(refs,
			inventory.NewRef("apps/v1", "Deployment", namespace, name),
			inventory.NewRef("v1", "ConfigMap", namespace, name))
	}
	return refs
}

// fill has a watch show all objects of a kind as the API server sends them: in a list, and each once more when it has
// been written since.
func fill(eyes *observer, at watchKey, plural string, text func(namespace, name string) string) {
	list := eyes.objectList(at, &meta.RESTMapping{
		Resource: at.GroupVersion().WithResource(plural), GroupVersionKind: at.GroupVersionKind, Scope: meta.RESTScopeNamespace,
	})
	show := func(release, number int) kruntime.Object {
		head, data, err := raw.Strip([]byte(text(namespaceOf(release), workloadOf(release, number))))
		if err != nil {
			panic(err)
		}
		object, err := list.Decode(head, data)
		if err != nil {
			panic(err)
		}
		return object
	}
	store, objects := &stateStore{eyes.model, at}, []any{}
	each := func(take func(kruntime.Object)) {
		for release := range watchedReleases {
			for number := range ofEachKind {
				take(show(release, number))
			}
		}
	}
	each(func(one kruntime.Object) { objects = append(objects, one) })
	_ = store.Replace(objects, "")
	each(func(one kruntime.Object) { _ = store.Update(one) })
}

// metadataAsHelmLeavesIt is the metadata of an object that Helm has applied, and others have written to.
func metadataAsHelmLeavesIt(namespace, name, fields, others string) string {
	return fmt.Sprintf(`"metadata": {"name": %[2]q, "namespace": %[1]q, "uid": "8f6c6a52-3b0c-4d0e-9a43-%[3]x",
		"resourceVersion": "4711", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
		"labels": {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/name": "component",
			"app.kubernetes.io/instance": %[2]q, "app.kubernetes.io/version": "1.2.3", "helm.sh/chart": "component-1.2.3"},
		"annotations": {"meta.helm.sh/release-name": "app", "meta.helm.sh/release-namespace": %[1]q, "checksum/config":
			"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
		"managedFields": [{"manager": "helm", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
			"fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {"f:app.kubernetes.io/managed-by": {},
			"f:app.kubernetes.io/name": {}, "f:app.kubernetes.io/instance": {}, "f:app.kubernetes.io/version": {},
			"f:helm.sh/chart": {}}, "f:annotations": {"f:meta.helm.sh/release-name": {}, "f:checksum/config": {}}}, %[4]s}}%[5]s]}`,
		namespace, name, name[:6], fields, others)
}

func deploymentAsHelmLeavesIt(namespace, name string) string {
	variable, owned := []string{}, []string{}
	for number := range 40 {
		variable = append(variable, fmt.Sprintf(`{"name": "VARIABLE_%d", "value": "some value of no interest"}`, number))
		owned = append(owned, fmt.Sprintf(`"k:{\"name\":\"VARIABLE_%d\"}": {".": {}, "f:name": {}, "f:value": {}}`, number))
	}
	fields := fmt.Sprintf(`"f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:spec": {"f:containers":
		{"k:{\"name\":\"main\"}": {"f:image": {}, "f:env": {%s}}}}}}`, strings.Join(owned, ","))
	others := `, {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "apps/v1", "subresource": "status",
		"time": "2026-01-01T00:00:05Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:availableReplicas": {}, "f:conditions": {}}}}`
	return fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", %s,
		"spec": {"replicas": 1, "selector": {"matchLabels": {"app": %q}}, "template": {"metadata": {"labels": {"app": %q}},
			"spec": {"containers": [{"name": "main", "image": "registry.example/component:1.2.3", "env": [%s]}]}}},
		"status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
			"conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
			{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]}}`,
		metadataAsHelmLeavesIt(namespace, name, fields, others), name, name, strings.Join(variable, ","))
}

func configMapAsHelmLeavesIt(namespace, name string) string {
	fields := []string{}
	for number := range 20 {
		fields = append(fields, fmt.Sprintf(`"f:key-%d.yaml": {}`, number))
	}
	// Of a ConfigMap only metadata is asked for.
	return fmt.Sprintf(`{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", %s}`,
		metadataAsHelmLeavesIt(namespace, name, `"f:data": {`+strings.Join(fields, ",")+`}`, ""))
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
