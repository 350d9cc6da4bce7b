package observe

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/drift"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

var rollouts = watchOf("argoproj.io", "v1alpha1", "Rollout")

func TestWhateverCanBeScaledIsLookedAtForAutoscalers(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = append(refs("a"), inventory.NewRef("argoproj.io/v1alpha1", "Rollout", "ns", "web"))
	s.model.putRecord(rec(1, "deployed"))
	s.asked("watch ConfigMap", "watch Rollout", "remember 1")
	s.model.scale(rollouts)
	s.asked("scalers ns")
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current})
	s.model.replaceObjects(rollouts, map[objectKey]objectState{key("web"): seen(7, 1, 10)})
	s.told("r1=deployed") // whether it is scaled is not known yet
	s.model.putScaler(workload{rollouts.GroupKind(), key("web")}, "hpa", current)
	s.model.scalersSeen("", true)
	s.told("o1=[a:CURRENT web:CURRENT] HorizontalPodAutoscaler/hpa:CURRENT")
	s.hands.inventories[2] = s.hands.inventories[1]
	s.hands.asked = nil
	s.model.putRecord(rec(2, "deployed"))
	s.asked("forget 1", "remember 2", "scalers ns") // nobody needs to ask discovery again
}

func TestAReleaseIsToldOfWhenItsOwnNamespaceWasLookedAt(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = []inventory.Ref{
		inventory.NewRef("apps/v1", "Deployment", "ns", "web"), inventory.NewRef("apps/v1", "Deployment", "else", "web"),
	}
	s.model.putRecord(rec(1, "deployed"))
	s.model.scale(deployments)
	s.model.scalersUnseen() // not everywhere at once
	s.model.replaceObjects(deployments, map[objectKey]objectState{key("web"): current, {"else", "web"}: current})
	s.told("r1=deployed")
	s.model.scalersSeen("other", true)
	s.model.scalersSeen("ns", true)
	s.told("")
	late := s.model.subscribe() // who comes in between is not told too early either
	if batch := late.take(); len(batch.GetObjects()) != 0 {
		t.Fatalf("told %v", batch)
	}
	s.model.scalersSeen("else", false)
	s.told("o1=[web:CURRENT web:CURRENT]")
}

// sight is what the reader is told of when `web` was written last.
func (s *scene) sight() uint64 {
	s.Helper()
	batch := s.reader.take()
	if len(batch.GetObjects()) != 1 {
		s.Fatalf("told %v", batch)
	}
	return batch.GetObjects()[0].GetStates()[0].GetSight()
}

func TestScalingIsNotWorthALookWhereItIsTheirs(t *testing.T) {
	for _, one := range []struct {
		hpa, visible bool
		again        uint64
	}{{true, true, 8}, {false, true, 2}, {false, false, 8}} {
		s := newScene(t)
		s.deploy()
		if one.hpa {
			s.model.putScaler(web, "hpa", current)
		}
		s.model.scalersSeen("ns", one.visible)
		at := objectState{state: enginev1.ObjectState_CURRENT, trace: drift.Trace{Own: 7, Sight: 1, Edit: 8, Version: 10}}
		s.model.replaceObjects(deployments, map[objectKey]objectState{key("web"): at})
		s.sight()
		at.trace.Sight, at.trace.Version = 2, 11
		s.model.putObject(deployments, key("web"), at)
		if got := s.sight(); got != one.again {
			t.Errorf("%+v: scaled, the sight is %d", one, got)
		}
	}
}

func TestAutoscalersThatCannotBeListedHoldNoReleaseForLong(t *testing.T) {
	s := newScene(t)
	s.deploy()
	s.model.replaceObjects(deployments, map[objectKey]objectState{key("web"): current})
	start := time.Now()
	s.model.fail(&enginev1.Fault{})
	s.told("r1=deployed fault")
	s.model.failScalers("", start.Add(-2*time.Hour))
	s.model.failScalers("", start.Add(-time.Hour))
	s.model.work()
	s.told("recovered") // what could not be seen with all the rest is not held against it
	s.model.failScalers("", start.Add(-time.Hour+kindPatience-1))
	s.told("")
	s.model.failScalers("", start)
	s.told("o1=[web:CURRENT]")
	s.model.failScalers("", start.Add(time.Minute))
	s.told("")
	s.model.scalersSeen("", true)
	s.told("o1=[web:CURRENT]") // what is scaled is judged in another way from now on
	s.model.putScaler(web, "hpa", current)
	s.told("o1=[web:CURRENT] HorizontalPodAutoscaler/hpa:CURRENT")
	s.model.failScalers("", start.Add(time.Hour))
	s.model.failScalers("", start.Add(2*time.Hour))
	s.told("") // what is known stays
}

func TestAutoscalersOutOfReachWithTheirRecordsHaveAllTheirTimeAfterwards(t *testing.T) {
	s := newScene(t)
	s.model.narrowRecords()
	s.deploy()
	s.model.replaceObjects(deployments, map[objectKey]objectState{key("web"): current})
	start := time.Now()
	s.model.failSpace("ns", &enginev1.Fault{})
	s.reader.take()
	s.model.failScalers("ns", start.Add(-2*time.Hour))
	s.model.failScalers("ns", start.Add(-time.Hour))
	s.model.workSpace("ns")
	s.told("n/ns=false")
	s.model.failScalers("ns", start.Add(-time.Hour+kindPatience-1))
	s.told("")
	s.model.failScalers("ns", start)
	s.told("o1=[web:CURRENT] NAMESPACE")
}

// autoscaled answers like an API server of which autoscalers are to be seen in one namespace, when it is time.
type autoscaled struct {
	time    chan struct{}
	granted atomic.Bool
	refused atomic.Int32 // how often the poor were
}

func (a *autoscaled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case path == "/apis":
		fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"argoproj.io",
			"versions":[{"groupVersion":"argoproj.io/v1alpha1","version":"v1alpha1"}]}]}`)
	case path == "/apis/argoproj.io/v1alpha1":
		fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"argoproj.io/v1alpha1","resources":[
			{"name":"rollouts","namespaced":true,"kind":"Rollout"},{"name":"rollouts/scale","namespaced":true,"kind":"Scale"},
			{"name":"analysisruns","namespaced":true,"kind":"AnalysisRun"}]}`)
	case path == "/api":
		fmt.Fprint(w, `{"kind":"APIVersions","versions":[]}`)
	case strings.Contains(path, "/namespaces/ill/"):
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`)
	case strings.Contains(path, "/namespaces/poor/") && a.granted.Load():
		fmt.Fprint(w, `{"type":"BOOKMARK","object":{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2",
			"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case strings.Contains(path, "/namespaces/rich/"):
		select {
		case <-a.time:
		case <-r.Context().Done(): // of a test that has failed
			return
		}
		fmt.Fprint(w, `{"type":"ADDED","object":{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2",
			"metadata":{"name":"hpa","namespace":"rich","resourceVersion":"4"},
			"spec":{"scaleTargetRef":{"apiVersion":"argoproj.io/v1alpha1","kind":"Rollout","name":"web"}}}}
			{"type":"BOOKMARK","object":{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2",
			"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		if strings.Contains(path, "/namespaces/poor/") {
			a.refused.Add(1)
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	}
}

func TestAutoscalersAreLookedForByNamespace(t *testing.T) {
	api := &autoscaled{time: make(chan struct{})}
	server := httptest.NewServer(api)
	defer server.Close()
	o := newObserver(connect(t, server.URL))
	defer o.stop()
	for resource, scales := range map[string]bool{"rollouts": true, "analysisruns": false} {
		if o.scales(schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: resource}) != scales {
			t.Errorf("whether %s can be scaled is not what discovery says", resource)
		}
	}
	look := func(namespace string) (bool, bool) {
		o.model.mu.Lock()
		defer o.model.mu.Unlock()
		return o.model.scalersAt(namespace)
	}
	o.scalers("rich")
	o.scalers("poor")
	until(t, "a refusal is known", func() bool { seen, known := look("poor"); return known && !seen })
	if _, known := look("rich"); known {
		t.Fatal("nobody has looked there yet")
	}
	o.scalers("ill")
	until(t, "a failure is noted", func() bool {
		o.model.mu.Lock()
		defer o.model.mu.Unlock()
		since, failing := o.model.scalersFailed["ill"]
		if failing {
			o.model.scalersFailed["ill"] = since.Add(-kindPatience)
		}
		return failing
	})
	until(t, "a failure that lasts holds up nobody", func() bool { seen, known := look("ill"); return known && !seen })
	before := api.refused.Load()
	retry := func() int { // as every action does
		o.retryScalers("poor")
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.scalerEyes["poor"].again)
	}
	retry()
	until(t, "it is asked again", func() bool { return api.refused.Load() > before })
	for range 5 { // a refusal holds for a while
		if retry() != 0 {
			t.Fatal("every action costs a request")
		}
	}
	o.retryScalers("nowhere")
	api.granted.Store(true)
	o.mu.Lock()
	o.scalerEyes["poor"].askedRefused = time.Now().Add(-widenRest)
	o.mu.Unlock()
	retry()
	until(t, "rights that were granted are noticed", func() bool { seen, _ := look("poor"); return seen })
	o.scalers("late")
	until(t, "another namespace is looked at", func() bool { _, known := look("late"); return known })
	o.renewScalers("late")
	o.mu.Lock()
	if o.scaled["late"] || o.scalerEyes["late"] != nil || !o.scaled["rich"] {
		t.Error("a namespace without workloads is looked at for ever")
	}
	o.mu.Unlock()
	close(api.time)
	until(t, "the autoscaler is seen", func() bool { seen, _ := look("rich"); return seen })
	o.model.mu.Lock()
	defer o.model.mu.Unlock()
	if held := o.model.scalersOf[workload{rollouts.GroupKind(), objectKey{"rich", "web"}}]; len(held) != 1 {
		t.Errorf("got %v", o.model.scalersOf)
	}
}
