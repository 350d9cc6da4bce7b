package observe

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// silence is the refusal of those who say nothing at all.
const silence = 0

// owning answers like an API server with a Deployment's ReplicaSets, of which it may say nothing for a while.
type owning struct {
	mu       sync.Mutex
	refusals map[string][]int // what the next questions for one of them get
	asked    []string
}

func (s *owning) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer, ok := map[string]string{
		"/api":          `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/api/v1":       `{"kind": "APIResourceList", "groupVersion": "v1", "resources": []}`,
		"/apis":         `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}]}]}`,
		"/apis/apps/v1": `{"kind": "APIResourceList", "groupVersion": "apps/v1", "resources": [{"name": "replicasets", "namespaced": true, "kind": "ReplicaSet", "verbs": ["get"]}]}`,
	}[r.URL.Path]
	code := http.StatusOK
	switch name := path.Base(r.URL.Path); {
	case strings.HasPrefix(r.URL.Path, "/apis/apps/v1/namespaces/ns/replicasets/"):
		code = s.next(name)
		answer = fmt.Sprintf(`{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata":
			{"name": %q, "namespace": "ns", "uid": %q, "ownerReferences":
			[{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": true}]}}`, name, "of "+name)
	case !ok:
		code = http.StatusNotFound
	}
	if code == silence {
		<-r.Context().Done()
		return
	}
	w.WriteHeader(code)
	if code != http.StatusOK {
		answer = fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "code": %d}`, code)
	}
	fmt.Fprint(w, answer)
}

func (s *owning) next(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, name)
	left := s.refusals[name]
	if len(left) == 0 {
		return http.StatusOK
	}
	s.refusals[name] = left[1:]
	return left[0]
}

func (s *owning) questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// wasAsked checks for whom it was asked since the beginning.
func (s *owning) wasAsked(t *testing.T, want ...string) {
	t.Helper()
	if got := s.questions(); !slices.Equal(got, want) {
		t.Fatalf("asked for %q, want %q", got, want)
	}
}

// watched is a namespace in which a release has the Deployment, and the watch of its pods.
type watched struct {
	*testing.T
	eyes  *observer
	store *podStore
	end   func()
}

// watch is one of which the test itself asks for the owners.
func (s *owning) watch(t *testing.T) *watched {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	scene := newScene(t)
	scene.deploy()
	eyes := newObserver(connect(t, server.URL))
	t.Cleanup(eyes.stop)
	eyes.model = scene.model
	ctx, cancel := context.WithCancel(eyes.ctx)
	store := newPodStore(ctx, eyes, "ns")
	store.retry, store.asking = time.Hour, true
	eyes.podEyes["ns"] = &podEye{close: cancel, store: store}
	return &watched{t, eyes, store, cancel}
}

// alone is one that asks by itself.
func (s *owning) alone(t *testing.T, retry time.Duration) *watched {
	t.Helper()
	out := s.watch(t)
	out.store.retry, out.store.asking = retry, false
	return out
}

// askAgain asks those who gave no answer as if their time had come.
func (w *watched) askAgain() {
	w.store.mu.Lock()
	for _, open := range w.store.questions {
		open.due = time.Time{}
	}
	w.store.mu.Unlock()
	w.store.askDue()
}

// cause checks why a workload is said to fail.
func (w *watched) cause(kind, name, want string) {
	w.Helper()
	if got := w.causeNow(kind, name); got != want {
		w.Fatalf("%s %s has %q, want %q", kind, name, got, want)
	}
}

func (w *watched) causeNow(kind, name string) string {
	w.eyes.model.mu.Lock()
	defer w.eyes.model.mu.Unlock()
	return w.eyes.model.cause(workload{watchOf("apps", "v1", kind).GroupKind(), key(name)})
}

func failingPod(of, name, reason string) *podObject {
	return &podObject{
		Head:  raw.Head{Namespace: "ns", Name: name},
		owner: owner{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: of, UID: "of " + of, Controller: true}, reason: reason,
	}
}

func TestEventsDoNotAskAnOwnerThatGaveNoAnswer(t *testing.T) {
	api := &owning{refusals: map[string][]int{"web-1": {http.StatusInternalServerError}}}
	pods := api.watch(t)
	_ = pods.store.Replace([]any{failingPod("web-1", "a", "crashes"), failingPod("web-1", "b", "crashes")}, "")
	pods.store.askDue()
	for range 5 {
		_ = pods.store.Update(failingPod("web-1", "b", "crashes again"))
	}
	_ = pods.store.Update(failingPod("web-1", "a", "crashes again"))
	pods.store.askDue() // it is too early
	api.wasAsked(t, "web-1")
	pods.askAgain()
	pods.cause("Deployment", "web", "pod a crashes again")
	_ = pods.store.Update(failingPod("web-1", "a", "crashes still"))
	pods.cause("Deployment", "web", "pod a crashes still")
	api.wasAsked(t, "web-1", "web-1")
}

func TestAnOwnerThatGaveNoAnswerIsAskedWithoutAnEvent(t *testing.T) {
	api := &owning{refusals: map[string][]int{"web-1": {http.StatusServiceUnavailable, http.StatusServiceUnavailable}}}
	pods := api.alone(t, time.Millisecond)
	_ = pods.store.Replace([]any{failingPod("web-1", "a", "crashes"), failingPod("web-1", "b", "crashes")}, "")
	_ = pods.store.Delete(failingPod("web-1", "a", "crashes"))
	pods.eyes.tasks.Wait() // and then nobody asks any more
	pods.cause("Deployment", "web", "pod b crashes")
	api.wasAsked(t, "web-1", "web-1", "web-1")
}

func TestNobodyAsksWhenTheWatchHasEnded(t *testing.T) {
	api := &owning{refusals: map[string][]int{"web-1": {http.StatusInternalServerError}}}
	pods := api.alone(t, time.Hour)
	_ = pods.store.Add(failingPod("web-1", "a", "crashes"))
	until(t, "it is asked", func() bool { return len(api.questions()) == 1 })
	pods.end()
	pods.eyes.tasks.Wait()
	pods.askAgain()
	api.wasAsked(t, "web-1")
}

func TestAnOwnerThatSaysNothingHoldsUpNeitherTheWatchNorAnother(t *testing.T) {
	api := &owning{refusals: map[string][]int{"web-1": {silence}}}
	pods := api.watch(t)
	_ = pods.store.Replace([]any{failingPod("web-1", "a", "crashes")}, "")
	api.wasAsked(t) // only beside the watch
	pods.store.askDue()
	_ = pods.store.Add(failingPod("web-2", "b", "hangs"))
	pods.askAgain()
	api.wasAsked(t, "web-1", "web-2", "web-1") // who was not asked yet comes first
	pods.cause("Deployment", "web", "pod a crashes")
}

func TestEachOwnerIsAskedEverMoreRarelyByItself(t *testing.T) {
	failures := slices.Repeat([]int{http.StatusInternalServerError}, 3)
	api := &owning{refusals: map[string][]int{"web-1": failures, "web-2": failures}}
	pods := api.watch(t)
	pods.store.retry = ownerRetryMost - time.Second
	_ = pods.store.Add(failingPod("web-1", "a", "crashes"))
	pods.store.askDue()
	pods.askAgain()
	_ = pods.store.Add(failingPod("web-2", "b", "crashes"))
	pods.store.askDue()
	for name, wait := range map[string]time.Duration{"web-1": ownerRetryMost, "web-2": ownerRetryMost - time.Second} {
		if got := pods.store.questions["of "+name].wait; got != wait {
			t.Errorf("%s is asked again after %v, want %v", name, got, wait)
		}
	}
}

func TestNobodyAsksForAPodThatIsGone(t *testing.T) {
	refused := []int{http.StatusForbidden}
	api := &owning{refusals: map[string][]int{"web-1": refused, "web-2": refused, "web-3": refused}}
	pods := api.alone(t, time.Hour)
	for _, of := range []string{"web-1", "web-2", "web-3"} {
		_ = pods.store.Add(failingPod(of, "pod-of-"+of, "crashes"))
		pods.eyes.tasks.Wait()
	}
	_ = pods.store.Delete(failingPod("web-1", "pod-of-web-1", ""))
	_ = pods.store.Update(failingPod("web-3", "pod-of-web-3", ""))
	pods.eyes.retryPods("ns")
	pods.eyes.tasks.Wait()
	api.wasAsked(t, "web-1", "web-2", "web-3", "web-2")
	if len(pods.store.questions) != 0 || len(pods.store.waiting) != 0 {
		t.Error("something is kept for pods that are gone")
	}
}

func TestOwnersAreNotKeptForEver(t *testing.T) {
	pods := (&owning{}).watch(t)
	for number := range 2 * ownersKept {
		pods.store.answered(owner{UID: fmt.Sprint(number)}, owner{}, nil)
	}
	if got := pods.store.owners.Len(); got != ownersKept {
		t.Errorf("%d owners are kept", got)
	}
}

func TestAnOwnerThatMayNotBeAskedIsAskedWhenRightsMayHaveChanged(t *testing.T) {
	api := &owning{refusals: map[string][]int{"web-1": {http.StatusForbidden, http.StatusForbidden}}}
	pods := api.alone(t, time.Hour)
	_ = pods.store.Add(failingPod("web-1", "a", "crashes"))
	_ = pods.store.Update(failingPod("web-1", "a", "crashes again"))
	pods.eyes.tasks.Wait()
	api.wasAsked(t, "web-1")
	pods.cause("ReplicaSet", "web-1", "pod a crashes again")
	pods.eyes.retryPods("elsewhere")
	for range 5 { // a refusal holds for a while
		pods.eyes.retryPods("ns")
		pods.eyes.tasks.Wait()
	}
	api.wasAsked(t, "web-1", "web-1")
	pods.eyes.podEyes["ns"].askedRefused = time.Now().Add(-widenRest)
	pods.eyes.retryPods("ns")
	pods.eyes.tasks.Wait()
	pods.cause("Deployment", "web", "pod a crashes again")
	pods.cause("ReplicaSet", "web-1", "")
}

func TestAnObserverThatHasStoppedStartsNothing(t *testing.T) {
	api := &owning{refusals: map[string][]int{"web-1": {http.StatusForbidden}}}
	pods := api.alone(t, time.Hour)
	_ = pods.store.Add(failingPod("web-1", "a", "crashes"))
	pods.eyes.tasks.Wait()
	pods.eyes.stop()
	pods.eyes.run(func(context.Context) { t.Error("a task runs for which nobody waits") })
	pods.eyes.retryPods("ns")
	pods.eyes.tasks.Wait()
	api.wasAsked(t, "web-1")
}
