package observe

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

func TestAFailingKindIsNobodyElsesBusiness(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a", "job", "job-lost")
	s.model.putRecord(rec(1, "deployed"))
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current})
	s.model.replaceObjects(jobs, map[objectKey]objectState{key("job"): current, key("job-lost"): current})
	s.told("r1=deployed o1=[a:CURRENT job-lost:CURRENT job:CURRENT]")
	s.hands.asked = nil
	start := time.Now()
	s.model.failKind(jobs, "no", start)
	s.model.failKind(jobs, "no", start.Add(kindPatience-1))
	if !s.model.workKind(jobs) || s.model.workKind(jobs) {
		t.Fatal("it had failed, and then worked")
	}
	s.told("") // too short to be worth a word
	s.model.failKind(jobs, "no", start)
	s.model.failKind(jobs, "no", start.Add(kindPatience))
	s.told("o1+[job-lost:UNKNOWN job:UNKNOWN]") // and no fault
	s.model.failKind(jobs, "still no", start.Add(2*kindPatience))
	s.told("")
	s.attend(checked("true", "")) // of another kind
	s.reader.take()
	s.asked("check ConfigMap a true")

	// A revision that comes meanwhile has what the kind says now, not what it showed once.
	s.attend(&enginev1.Attention{})
	s.hands.inventories[2] = refs("job")
	s.model.putRecord(rec(2, "deployed"))
	s.reader.take()
	s.hands.asked = nil
	if got := s.model.releases[app].members[0].state; got.state != enginev1.ObjectState_UNKNOWN || got.message != "no" {
		t.Fatalf("got %+v", got)
	}
	s.model.workKind(jobs) // the watch goes on where it stopped
	s.told("o2+[job:CURRENT]")
	s.asked()
}

func TestAFailingKindIsSeenForTheFirstTime(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("job")
	s.model.putRecord(rec(1, "deployed"))
	s.told("r1=deployed")
	start := time.Now()
	s.model.failKind(jobs, "no", start)
	s.model.failKind(jobs, "no", start.Add(kindPatience))
	s.told("o1=[job:UNKNOWN]")
	s.hands.asked = nil
	s.model.workKind(jobs)
	s.asked() // the list is about to show it, or not
	s.model.replaceObjects(jobs, nil)
	s.asked("check Job job false")
	s.model.checked(jobs, key("job"), notFound)
	s.told("o1+[job:NOT_FOUND]")
}

func TestACheckedKindThatFailsIsNotRead(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a")
	s.model.putRecord(rec(1, "deployed"))
	start := time.Now()
	s.model.failKind(configMaps, "no", start)
	s.model.failKind(configMaps, "no", start.Add(kindPatience))
	s.hands.asked = nil
	s.attend(checked("true", ""))
	s.asked()
	s.model.blind(configMaps, true)
	s.asked("check ConfigMap a true") // why it failed is known now
}

func TestAClusterThatDoesNotAnswerIsSaidOnce(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a")
	s.model.putRecord(rec(1, "deployed"))
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current})
	s.told("r1=deployed o1=[a:CURRENT]")
	start := time.Now()
	s.model.failKind(configMaps, "no", start)
	s.model.fail(&enginev1.Fault{})
	s.told("fault")
	s.model.failKind(configMaps, "no", start.Add(10*kindPatience))
	s.told("")
	s.model.work()
	s.told("recovered")
	s.model.failKind(configMaps, "no", start.Add(11*kindPatience-1))
	s.told("") // it has as long as ever
	s.model.failKind(configMaps, "no", start.Add(11*kindPatience))
	s.told("o1+[a:UNKNOWN]")
}

func TestANamespaceThatDoesNotAnswerIsSaidOnce(t *testing.T) {
	s := newScene(t)
	s.model.narrowRecords()
	s.attend(&enginev1.Attention{External: []*enginev1.Ref{{ApiVersion: "batch/v1", Kind: "Job", Namespace: "ns", Name: "job"}}})
	s.hands.inventories[1] = refs("a")
	s.model.replaceRecords("ns", []*record{rec(1, "deployed")})
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current})
	external := watchKey{GroupVersionKind: jobs.GroupVersionKind, namespace: "ns", name: "job"}
	s.model.replaceObjects(external, map[objectKey]objectState{key("job"): current})
	s.model.failSpace("ns", &enginev1.Fault{})
	s.reader.take()
	start := time.Now()
	for _, at := range []watchKey{configMaps, external} {
		s.model.failKind(at, "no", start)
		s.model.failKind(at, "no", start.Add(kindPatience))
	}
	s.told("o1=[a:CURRENT] Job/job:UNKNOWN NAMESPACE") // others may look at it who have no records there
}

func TestAForbiddenNamespaceHidesNoFailureElsewhere(t *testing.T) {
	s := newScene(t)
	s.model.narrowRecords()
	s.hands.inventories[1] = refs("a")
	s.attend(&enginev1.Attention{})
	s.model.replaceRecords("ns", []*record{rec(1, "deployed")})
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current})
	s.reader.Attend([]*enginev1.Attention{{Namespace: "closed", Name: "other"}})
	s.model.failSpace("closed", &enginev1.Fault{})
	s.reader.take()
	start := time.Now()
	s.model.failKind(configMaps, "no", start)
	s.model.failKind(configMaps, "no", start.Add(kindPatience))
	s.told("o1+[a:UNKNOWN]")
}

// partial answers like an API server that serves one record and one Job, and Jobs only when they are mended.
type partial struct {
	listable, served atomic.Bool
}

const jobList = `{"kind": "JobList", "apiVersion": "batch/v1", "metadata": {"resourceVersion": "1"}, "items": [{"metadata":
	{"name": "job", "namespace": "ns", "uid": "j", "resourceVersion": "1", "labels": {"app.kubernetes.io/managed-by": "Helm"}},
	"status": {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}}]}`

func (p *partial) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	refuse := func(code int, reason string) {
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "message": "conversion webhook failed", "code": %d}`, reason, code)
	}
	job := strings.HasPrefix(r.URL.Path, "/apis/batch/v1")
	switch query := r.URL.Query(); {
	case job && !p.served.Load():
		refuse(http.StatusServiceUnavailable, "ServiceUnavailable")
	case job && !p.listable.Load() && r.URL.Path != "/apis/batch/v1":
		refuse(http.StatusInternalServerError, "InternalError")
	case query.Get("sendInitialEvents") != "":
		refuse(http.StatusUnprocessableEntity, "Invalid")
	case query.Get("watch") != "":
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		answer, ok := map[string]string{
			"/api":           `{"kind": "APIVersions", "versions": ["v1"]}`,
			"/api/v1":        `{"kind": "APIResourceList", "groupVersion": "v1", "resources": []}`,
			"/apis":          `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "batch", "versions": [{"groupVersion": "batch/v1", "version": "v1"}]}]}`,
			"/apis/batch/v1": `{"kind": "APIResourceList", "groupVersion": "batch/v1", "resources": [{"name": "jobs", "namespaced": true, "kind": "Job", "verbs": ["list", "watch"]}]}`,
			"/api/v1/secrets": `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "1"}, "items": [{"metadata":
				{"name": "sh.helm.release.v1.app.v1", "namespace": "ns", "uid": "r", "resourceVersion": "1",
				"labels": {"owner": "helm", "name": "app", "version": "1", "status": "deployed"}}}]}`,
			"/apis/batch/v1/jobs": jobList,
		}[r.URL.Path]
		if !ok {
			refuse(http.StatusNotFound, "NotFound")
			return
		}
		fmt.Fprint(w, answer)
	}
}

func TestAKindThatCannotBeListedRecoversByItself(t *testing.T) {
	for name, broken := range map[string]func(*partial) *atomic.Bool{
		"its list fails":                     func(p *partial) *atomic.Bool { return &p.listable },
		"what serves its group does not run": func(p *partial) *atomic.Bool { return &p.served },
	} {
		t.Run(name, func(t *testing.T) {
			api := &partial{}
			api.listable.Store(true)
			api.served.Store(true)
			broken(api).Store(false)
			eyes := api.observe(t)
			until(t, "the Job is unknown", func() bool {
				eyes.model.mu.Lock()
				if k := eyes.model.kinds[jobs]; k != nil && !k.failedSince.IsZero() {
					k.failedSince = k.failedSince.Add(-kindPatience) // as if it had failed that long
				}
				eyes.model.mu.Unlock()
				state := onlyMember(t, eyes.model)
				return state.state == enginev1.ObjectState_UNKNOWN &&
					strings.HasPrefix(state.message, "objects of kind Job cannot be listed: ")
			})
			broken(api).Store(true)
			until(t, "the Job is seen", func() bool { return onlyMember(t, eyes.model).state == enginev1.ObjectState_CURRENT })
		})
	}
}

// observe looks after the one release there is.
func (p *partial) observe(t *testing.T) *observer {
	t.Helper()
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	at := connect(t, server.URL)
	at.Inventories.Put("ns", "app", 1, refs("job"))
	hub := NewHub()
	subscription := hub.Subscribe(at)
	t.Cleanup(subscription.Close)
	subscription.Attend([]*enginev1.Attention{{Namespace: "ns", Name: "app"}})
	return hub.observers[at.ID].observer
}

// onlyMember is what is known of the one object; nothing may keep releases waiting meanwhile.
func onlyMember(t *testing.T, m *model) objectState {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		t.Fatalf("every release has to wait: %v", m.fault)
	}
	if rel := m.releases[app]; rel != nil && len(rel.members) == 1 && rel.members[0].known {
		return rel.members[0].state
	}
	return objectState{}
}
