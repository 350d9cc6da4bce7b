package observe

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

var crowdOfMaps = watchKey{GroupVersionKind: configMaps.GroupVersionKind, namespace: "ns", own: true}

// names are those of so many ConfigMaps, in their order.
func names(count int) []string {
	var out []string
	for number := range count {
		out = append(out, fmt.Sprintf("m%02d", number))
	}
	return out
}

// crowded is a release of ConfigMaps of which all but the last have lost their label, one after another.
func crowded(t *testing.T, count int) *scene {
	s := newScene(t)
	s.hands.inventories[1] = refs(names(count + 1)...)
	s.model.putRecord(rec(1, "deployed"))
	shown := map[objectKey]objectState{}
	for _, name := range names(count + 1) {
		shown[key(name)] = current.with(labelThere)
	}
	s.model.replaceObjects(configMaps, shown)
	for _, name := range names(count) {
		s.model.dropObject(configMaps, key(name))
		s.model.checked(configMaps, key(name), current.with(labelLost))
	}
	s.reader.take()
	return s
}

// lost is what a watch without a selector shows of them, and of somebody else's object.
func lost(count int) map[objectKey]objectState {
	out := map[objectKey]objectState{key("foreign"): current.with(labelLost)}
	for _, name := range names(count) {
		out[key(name)] = current.with(labelLost)
	}
	return out
}

func (s *scene) watchesAsked() (out []string) {
	for _, one := range s.hands.asked {
		if one != "watch ConfigMap" && one[:5] == "watch" {
			out = append(out, one)
		}
	}
	return out
}

func TestThousandsThatLoseTheirLabelHaveOneWatch(t *testing.T) {
	s := crowded(t, 1000)
	asked := s.watchesAsked()
	if len(asked) != strayLimit+1 || asked[strayLimit] != "watch ConfigMap in ns for a crowd" {
		t.Fatalf("asked for %v", asked)
	}
	left := 0
	for _, one := range s.hands.asked {
		if one[:7] == "unwatch" {
			left++
		}
	}
	if left != strayLimit {
		t.Errorf("%d watches by name are let go", left)
	}
	s.hands.asked = nil
	s.model.replaceObjects(crowdOfMaps, lost(1000))
	s.asked()
	s.told("")
	if held := len(s.model.kinds[crowdOfMaps].objects); held != 1000 {
		t.Errorf("%d objects are kept", held)
	}
}

func TestACrowdIsFollowedAsCloselyAsOne(t *testing.T) {
	count := strayLimit + 1
	s := crowded(t, count)
	s.model.replaceObjects(crowdOfMaps, lost(count))
	s.hands.asked = nil
	s.model.putObject(crowdOfMaps, key("m00"), failed.with(labelLost))
	s.told("o1+[m00:FAILED]")
	s.model.dropObject(crowdOfMaps, key("m00"))
	s.asked("check ConfigMap in ns for a crowd m00 true")
	s.model.checked(crowdOfMaps, key("m00"), notFound)
	s.told("o1+[m00:NOT_FOUND]")
	s.model.putObject(crowdOfMaps, key("m01"), current.with(labelThere))
	s.asked("check ConfigMap m01 false")
	s.model.putObject(crowdOfMaps, key("m01"), failed.with(labelLost)) // nobody's here any more
	s.told("")
	if s.model.cares(crowdOfMaps, key("m01")) || s.model.cares(crowdOfMaps, key("foreign")) || !s.model.cares(crowdOfMaps, key("m02")) {
		t.Error("it cares for the wrong ones")
	}

	last := names(count + 1)[count]
	s.model.dropObject(configMaps, key(last))
	s.model.checked(configMaps, key(last), current.with(labelLost))
	// Its watch has shown everything and kept nothing of it: that it is not shown does not mean that it is gone.
	s.asked("check ConfigMap "+last+" true", "check ConfigMap in ns for a crowd "+last+" true")
	s.model.checked(crowdOfMaps, key(last), current.with(labelLost))
	s.told("")
	// Not even after a gap, in which it may have been deleted.
	listed := lost(count)
	delete(listed, key("m00"))
	delete(listed, key("m01"))
	s.hands.asked = nil
	s.model.replaceObjects(crowdOfMaps, listed)
	s.asked("check ConfigMap in ns for a crowd m00 true", "check ConfigMap in ns for a crowd "+last+" true")
	s.model.checked(crowdOfMaps, key(last), notFound)
	s.told("o1+[" + last + ":NOT_FOUND]")
	s.hands.asked = nil
	s.model.putRecord(rec(1, "uninstalling"))
	s.model.dropRecord(rec(1, "uninstalling"))
	s.asked("forget 1", "unwatch ConfigMap", "unwatch ConfigMap in ns for a crowd")
}

func TestOtherNamespacesHaveWatchesOfTheirOwn(t *testing.T) {
	s := crowded(t, strayLimit)
	s.hands.asked = nil
	s.model.mu.Lock()
	elsewhere := s.model.strayPlace(inventory.NewRef("v1", "ConfigMap", "else", "a"))
	another := s.model.strayPlace(inventory.NewRef("v1", "Secret", "ns", "a"))
	s.model.mu.Unlock()
	if elsewhere.crowd() || another.crowd() {
		t.Error("watches of others are counted")
	}
	s.asked()
}

// listed answers like an API server with two ConfigMaps, and notes what it is asked.
type listed struct {
	mu    sync.Mutex
	asked []string
}

func (l *listed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	l.mu.Lock()
	l.asked = append(l.asked, r.URL.Path+"?"+query.Get("labelSelector")+query.Get("fieldSelector"))
	l.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	for _, name := range []string{"m00", "foreign"} {
		fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",
			"metadata":{"name":%q,"namespace":"ns","resourceVersion":"4","managedFields":[{"manager":"helm"}]}}}`+"\n", name)
	}
	fmt.Fprint(w, `{"type":"BOOKMARK","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",
		"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n")
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// greedy notes what a list brings of what must not be kept until its end.
type greedy struct {
	*stateStore
	kept int
}

func (g *greedy) Replace(objects []any, version string) error {
	for _, object := range objects {
		g.kept += len(object.(*stateObject).Managed())
	}
	return g.stateStore.Replace(objects, version)
}

func TestACrowdsWatchAsksForAllAndKeepsItsOwn(t *testing.T) {
	api := &listed{}
	server := httptest.NewServer(api)
	defer server.Close()
	o := newObserver(connect(t, server.URL))
	defer o.stop()
	rel := &release{key: releaseKey{"ns", "app"}, newest: rec(1, "deployed"), revision: 1}
	k := &kind{at: crowdOfMaps, objects: map[objectKey]objectState{}, members: map[objectKey][]*member{}}
	o.model.kinds[crowdOfMaps] = k
	k.members[key("m00")] = []*member{{release: rel, kind: k, key: key("m00"), known: true}}
	mapping := &meta.RESTMapping{
		Resource:         schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		GroupVersionKind: crowdOfMaps.GroupVersionKind, Scope: meta.RESTScopeNamespace,
	}
	store := &greedy{stateStore: &stateStore{o.model, crowdOfMaps}}
	o.run(func(ctx context.Context) { raw.Reflect(ctx, o.objectList(crowdOfMaps, mapping), store) })
	until(t, "it is listed", func() bool { o.model.mu.Lock(); defer o.model.mu.Unlock(); return k.ready })
	o.model.mu.Lock()
	defer o.model.mu.Unlock()
	if len(k.objects) != 1 || k.objects[key("m00")].state != enginev1.ObjectState_CURRENT {
		t.Errorf("kept %v", k.objects)
	}
	if store.kept != 0 {
		t.Errorf("%d bytes of what the API server sent are kept until the list ends", store.kept)
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	if !slices.Equal(api.asked, []string{"/api/v1/namespaces/ns/configmaps?"}) {
		t.Errorf("asked %v", api.asked)
	}
}
