package observe

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

const (
	// ownerDepth is how far a pod's owners are followed: a Job's pod, a Deployment's by its ReplicaSet.
	ownerDepth = 3
	// ownerPatience is how long one answer about an owner may take: the watch waits for it.
	ownerPatience = 10 * time.Second
	// An owner that could not be asked is asked again after ownerRetry, then ever more rarely.
	ownerRetry     = 500 * time.Millisecond
	ownerRetryMost = time.Minute
)

// podStore passes the pods that fail to the model, under the workload they belong to.
type podStore struct {
	observer  *observer
	ctx       context.Context //nolint:containedctx // of the watch, for the questions it leads to
	namespace string

	mu      sync.Mutex
	failing map[string]workload   // by pod
	waiting map[string]*podObject // those whose owners could not all be asked, by name
	owners  map[string]owner      // of owners, by uid
	faults  map[string]error      // why owners could not be asked, by uid; of those that may not be asked, to the end
	asking  bool                  // somebody will ask again
}

func newPodStore(ctx context.Context, o *observer, namespace string) *podStore {
	return &podStore{
		observer: o, ctx: ctx, namespace: namespace,
		failing: map[string]workload{}, waiting: map[string]*podObject{},
		owners: map[string]owner{}, faults: map[string]error{},
	}
}

func (s *podStore) Add(object any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	s.take(object.(*podObject))
	s.askLater()
	return nil
}

func (s *podStore) Update(object any) error { return s.Add(object) }

func (s *podStore) Delete(object any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear(object.(*podObject).Name)
	return nil
}

func (s *podStore) Replace(objects []any, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	seen := make(map[string]bool, len(objects))
	for _, object := range objects {
		pod := object.(*podObject)
		seen[pod.Name] = true
		s.take(pod)
	}
	for name := range s.failing {
		if !seen[name] {
			s.clear(name)
		}
	}
	for name := range s.waiting {
		if !seen[name] {
			s.clear(name)
		}
	}
	s.askLater()
	return nil
}

func (s *podStore) Resync() error { return nil }

// begin forgets why owners could not be asked, but for those that may not be: each is asked at most once for one
// event, however many pods it has.
func (s *podStore) begin() {
	maps.DeleteFunc(s.faults, func(_ string, err error) bool { return !isForbidden(err) })
}

func (s *podStore) take(pod *podObject) {
	if pod.reason == "" {
		s.clear(pod.Name)
		return
	}
	if of, known := s.failing[pod.Name]; known && s.waiting[pod.Name] == nil {
		s.put(pod, of)
		return
	}
	s.place(pod)
}

// place finds the workload a pod belongs to; a pod whose owners cannot be asked now waits for it.
func (s *podStore) place(pod *podObject) {
	of, err := s.workload(pod.owner)
	if err == nil {
		delete(s.waiting, pod.Name)
	} else {
		s.waiting[pod.Name] = pod
	}
	if err == nil || isForbidden(err) { // as near as the rights allow
		s.put(pod, of)
	}
}

func (s *podStore) put(pod *podObject, of workload) {
	if s.ctx.Err() != nil {
		return // nobody would take it back
	}
	if was, ok := s.failing[pod.Name]; ok && was != of {
		s.observer.model.putPod(was, pod.Name, "")
	}
	s.failing[pod.Name] = of
	s.observer.model.putPod(of, pod.Name, pod.reason)
}

func (s *podStore) clear(pod string) {
	delete(s.waiting, pod)
	if of, ok := s.failing[pod]; ok {
		delete(s.failing, pod)
		s.observer.model.putPod(of, pod, "")
	}
}

// forget takes everything back when the watch has ended.
func (s *podStore) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observer.model.forgetPods(s.namespace)
}

// askLater has the owners asked again that gave no answer: their pods may have no further event.
func (s *podStore) askLater() {
	if s.asking || !s.unanswered() {
		return
	}
	s.asking = true
	s.observer.run(func(context.Context) {
		for delay := ownerRetry; ; delay = min(2*delay, ownerRetryMost) {
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(delay):
			}
			if s.askAgain() {
				return
			}
		}
	})
}

// askAgain tells whether there is nothing left to ask.
func (s *podStore) askAgain() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	s.placeWaiting()
	s.asking = s.unanswered()
	return !s.asking
}

// askRefused asks for the owners that might not be asked.
func (s *podStore) askRefused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.faults)
	s.placeWaiting()
	s.askLater()
}

func (s *podStore) placeWaiting() {
	for _, pod := range s.waiting {
		if s.ctx.Err() != nil {
			return
		}
		s.place(pod)
	}
}

// unanswered tells whether some pod waits for an answer, and not for rights.
func (s *podStore) unanswered() bool {
	if len(s.waiting) == 0 {
		return false
	}
	for _, err := range s.faults {
		if !isForbidden(err) {
			return true
		}
	}
	return false
}

// workload follows owners up to one that a release has, or to the last; an error says that there may be others above.
func (s *podStore) workload(of owner) (workload, error) {
	for range ownerDepth {
		found := workload{of.gvk().GroupKind(), objectKey{s.namespace, of.Name}}
		if s.observer.model.has(found) {
			return found, nil
		}
		above, err := s.above(of)
		if err != nil || above.Name == "" {
			return found, err
		}
		of = above
	}
	return workload{of.gvk().GroupKind(), objectKey{s.namespace, of.Name}}, nil
}

// above is an owner's own controller. Only answers are kept, and refusals.
func (s *podStore) above(of owner) (owner, error) {
	if above, ok := s.owners[of.UID]; ok {
		return above, nil
	}
	if err := s.faults[of.UID]; err != nil {
		return owner{}, err
	}
	above, err := s.observer.ownerOf(s.ctx, s.namespace, of)
	if err != nil {
		s.faults[of.UID] = err
		return owner{}, err
	}
	s.owners[of.UID] = above
	return above, nil
}

// ownerOf asks for an owner's own controller; one that is not there has none.
func (o *observer) ownerOf(ctx context.Context, namespace string, of owner) (owner, error) {
	mapping, err := o.at.Mapper().RESTMapping(of.gvk().GroupKind(), of.gvk().Version)
	if meta.IsNoMatchError(err) {
		return owner{}, nil
	}
	if err != nil {
		return owner{}, err
	}
	target := targetOf(mapping, namespace)
	target.MetadataOnly = true
	ctx, cancel := context.WithTimeout(ctx, ownerPatience)
	defer cancel()
	data, err := raw.Get(ctx, o.at.REST(), target, of.Name)
	if err != nil {
		switch fault.FromAPI(err).Kind {
		case enginev1.Fault_NOT_FOUND, enginev1.Fault_NAMESPACE_MISSING:
			return owner{}, nil
		}
		return owner{}, err
	}
	var object struct {
		Metadata struct {
			UID             string  `json:"uid"`
			OwnerReferences []owner `json:"ownerReferences"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return owner{}, err
	}
	if object.Metadata.UID != of.UID {
		return owner{}, nil // another of the same name
	}
	return controllerOf(object.Metadata.OwnerReferences), nil
}
