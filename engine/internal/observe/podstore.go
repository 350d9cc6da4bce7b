package observe

import (
	"context"
	"encoding/json"
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
	// ownerPatience is how long one answer about an owner may take: the first time, the watch waits for it.
	ownerPatience = 2 * time.Second
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
	faults  map[string]unanswered // those that could not be asked, by uid
	asking  bool                  // somebody will ask again
}

// unanswered is an owner that could not be asked for its own, and why.
type unanswered struct {
	of  owner
	err error
}

func newPodStore(ctx context.Context, o *observer, namespace string) *podStore {
	return &podStore{
		observer: o, ctx: ctx, namespace: namespace,
		failing: map[string]workload{}, waiting: map[string]*podObject{},
		owners: map[string]owner{}, faults: map[string]unanswered{},
	}
}

func (s *podStore) Add(object any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
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
	if s.asking || len(s.owing(false)) == 0 {
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
	s.ask(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = len(s.owing(false)) > 0
	return !s.asking
}

// askRefused asks for the owners that might not be asked.
func (s *podStore) askRefused() {
	s.ask(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.askLater()
}

// ask asks for owners again, those that may not be asked or the others, and finds the pods' workloads anew. The watch
// goes on meanwhile.
func (s *podStore) ask(refused bool) {
	s.mu.Lock()
	owing := s.owing(refused)
	s.mu.Unlock()
	for _, of := range owing {
		above, err := s.observer.ownerOf(s.ctx, s.namespace, of)
		s.mu.Lock()
		s.note(of, above, err)
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pod := range s.waiting {
		if s.ctx.Err() != nil || len(owing) == 0 {
			return
		}
		s.place(pod)
	}
}

// owing are the owners without an answer, those that may not be asked or the others. Without pods that wait, there are
// none.
func (s *podStore) owing(refused bool) []owner {
	if len(s.waiting) == 0 {
		clear(s.faults)
	}
	var out []owner
	for _, one := range s.faults {
		if isForbidden(one.err) == refused {
			out = append(out, one.of)
		}
	}
	return out
}

// note keeps an answer, or why there was none.
func (s *podStore) note(of, above owner, err error) {
	if err != nil {
		s.faults[of.UID] = unanswered{of, err}
		return
	}
	delete(s.faults, of.UID)
	s.owners[of.UID] = above
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

// above is an owner's own controller. One that gave no answer is not asked here again: an event of each of its pods
// would hold up the watch.
func (s *podStore) above(of owner) (owner, error) {
	if above, ok := s.owners[of.UID]; ok {
		return above, nil
	}
	if held, ok := s.faults[of.UID]; ok {
		return owner{}, held.err
	}
	above, err := s.observer.ownerOf(s.ctx, s.namespace, of)
	s.note(of, above, err)
	return above, err
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
