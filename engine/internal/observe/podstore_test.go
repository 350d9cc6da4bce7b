package observe

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// owning answers like an API server with a Deployment's ReplicaSet, of which it may say nothing for a while.
type owning struct {
	mu    sync.Mutex
	code  int // 0: it answers
	times int // how often, before it answers
	asked int
}

func (s *owning) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer, ok := map[string]string{
		"/api":          `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/api/v1":       `{"kind": "APIResourceList", "groupVersion": "v1", "resources": []}`,
		"/apis":         `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}]}]}`,
		"/apis/apps/v1": `{"kind": "APIResourceList", "groupVersion": "apps/v1", "resources": [{"name": "replicasets", "namespaced": true, "kind": "ReplicaSet", "verbs": ["get"]}]}`,
		"/apis/apps/v1/namespaces/ns/replicasets/web-1": `{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata":
			{"name": "web-1", "namespace": "ns", "uid": "r", "ownerReferences":
			[{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": true}]}}`,
	}[r.URL.Path]
	code := http.StatusOK
	switch {
	case !ok:
		code = http.StatusNotFound
	case r.URL.Path == "/apis/apps/v1/namespaces/ns/replicasets/web-1":
		code = s.next()
	}
	w.WriteHeader(code)
	if code != http.StatusOK {
		answer = fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "code": %d}`, code)
	}
	fmt.Fprint(w, answer)
}

func (s *owning) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.code != 0 && s.times > 0 {
		s.times--
		return s.code
	}
	return http.StatusOK
}

// refuse has the next questions refused.
func (s *owning) refuse(code, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code, s.times = code, times
}

func (s *owning) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// eye looks at the pods of a namespace in which a release has the Deployment; close ends the watch.
func (s *owning) eye(t *testing.T) (eyes *observer, store *podStore, end func()) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	scene := newScene(t)
	scene.hands.inventories[1] = []inventory.Ref{inventory.NewRef("apps/v1", "Deployment", "ns", "web")}
	scene.model.putRecord(rec(1, "deployed"))
	eyes = newObserver(connect(t, server.URL))
	t.Cleanup(func() { eyes.cancel(); eyes.tasks.Wait() })
	eyes.model = scene.model
	ctx, cancel := context.WithCancel(eyes.ctx)
	store = newPodStore(ctx, eyes, "ns")
	eyes.podEyes["ns"] = &podEye{close: cancel, store: store}
	return eyes, store, cancel
}

func failingPod(name, reason string) *podObject {
	return &podObject{
		Head:  raw.Head{Namespace: "ns", Name: name},
		owner: owner{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "r", Controller: true}, reason: reason,
	}
}

func causeOf(eyes *observer, kind, name string) string {
	eyes.model.mu.Lock()
	defer eyes.model.mu.Unlock()
	return eyes.model.cause(workload{watchOf("apps", "v1", kind).GroupKind(), key(name)})
}

func TestEventsDoNotAskAnOwnerThatGaveNoAnswer(t *testing.T) {
	api := &owning{}
	eyes, store, _ := api.eye(t)
	api.refuse(http.StatusInternalServerError, 1)
	_ = store.Replace([]any{failingPod("a", "crashes"), failingPod("b", "crashes")}, "")
	for range 5 {
		_ = store.Update(failingPod("b", "crashes again"))
	}
	_ = store.Update(failingPod("a", "crashes again"))
	if got := api.questions(); got != 1 {
		t.Fatalf("an owner was asked %d times", got)
	}
	until(t, "the reason is told", func() bool { return causeOf(eyes, "Deployment", "web") == "pod a crashes again" })
	_ = store.Update(failingPod("a", "crashes still"))
	if got := api.questions(); got != 2 {
		t.Fatalf("asked %d times for what was answered", got)
	}
}

func TestAnOwnerThatGaveNoAnswerIsAskedWithoutAnEvent(t *testing.T) {
	api := &owning{}
	eyes, store, _ := api.eye(t)
	api.refuse(http.StatusServiceUnavailable, 2)
	_ = store.Add(failingPod("a", "crashes"))
	_ = store.Add(failingPod("b", "crashes"))
	_ = store.Delete(failingPod("a", "crashes"))
	until(t, "the reason is told", func() bool { return causeOf(eyes, "Deployment", "web") == "pod b crashes" })
	eyes.tasks.Wait() // and then nobody asks any more
	if got := api.questions(); got != 3 {
		t.Fatalf("asked %d times", got)
	}
}

func TestNobodyAsksWhenTheWatchHasEnded(t *testing.T) {
	api := &owning{}
	eyes, store, end := api.eye(t)
	api.refuse(http.StatusInternalServerError, 1)
	_ = store.Add(failingPod("a", "crashes"))
	end()
	eyes.tasks.Wait()
	if got := api.questions(); got != 1 {
		t.Fatalf("asked %d times", got)
	}
}

func TestAnOwnerThatMayNotBeAskedIsAskedWhenRightsMayHaveChanged(t *testing.T) {
	api := &owning{}
	eyes, store, _ := api.eye(t)
	api.refuse(http.StatusForbidden, 2)
	_ = store.Add(failingPod("a", "crashes"))
	_ = store.Update(failingPod("a", "crashes again"))
	eyes.tasks.Wait()
	if got := api.questions(); got != 1 {
		t.Fatalf("asked %d times in vain", got)
	}
	if got := causeOf(eyes, "ReplicaSet", "web-1"); got != "pod a crashes again" {
		t.Fatalf("what is known is %q", got)
	}
	eyes.retryPods("elsewhere")
	for range 5 { // a refusal holds for a while
		eyes.retryPods("ns")
		eyes.tasks.Wait()
	}
	if got := api.questions(); got != 2 {
		t.Fatalf("asked %d times at once", got)
	}
	eyes.podEyes["ns"].askedRefused = time.Now().Add(-widenRest)
	eyes.retryPods("ns")
	eyes.tasks.Wait()
	if got := causeOf(eyes, "Deployment", "web"); got != "pod a crashes again" {
		t.Fatalf("got %q", got)
	}
	if got := causeOf(eyes, "ReplicaSet", "web-1"); got != "" {
		t.Fatalf("the ReplicaSet still has %q", got)
	}
}
