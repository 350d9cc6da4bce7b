package observe

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/lru"
)

// podStore passes the pods that fail to the model, under the workload they belong to.
type podStore struct {
	observer  *observer
	ctx       context.Context //nolint:containedctx // of the watch, for the questions it leads to
	namespace string
	retry     time.Duration // how soon an owner is asked again that gave no answer, at first

	mu        sync.Mutex
	failing   map[string]workload  // by pod
	waiting   map[string]*question // what keeps a pod from its workload, by pod
	questions map[string]*question // by the owner's uid; each has pods that wait for it
	owners    *lru.Cache           // of owners, by uid
	asking    bool                 // somebody asks, now or later
}

func newPodStore(ctx context.Context, o *observer, namespace string) *podStore {
	return &podStore{
		observer: o, ctx: ctx, namespace: namespace, retry: ownerRetry,
		failing: map[string]workload{}, waiting: map[string]*question{}, questions: map[string]*question{},
		owners: lru.New(ownersKept),
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

// place finds the workload a pod belongs to; a pod whose owners are not all known waits for it.
func (s *podStore) place(pod *podObject) {
	of, open := s.workload(pod.owner)
	if s.waiting[pod.Name] != open {
		s.leave(pod.Name)
	}
	if open != nil {
		s.waiting[pod.Name], open.pods[pod.Name] = open, pod
	}
	if open == nil || open.refused { // as near as the rights allow
		s.put(pod, of)
	}
}

// leave has a pod wait no longer. A question for which no pod waits is not asked.
func (s *podStore) leave(pod string) {
	open := s.waiting[pod]
	if open == nil {
		return
	}
	delete(s.waiting, pod)
	delete(open.pods, pod)
	if len(open.pods) == 0 {
		delete(s.questions, open.of.UID)
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
	s.leave(pod)
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
