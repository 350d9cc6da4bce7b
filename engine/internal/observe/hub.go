// Package observe watches release records and the state of every object of every release.
//
// One Observer serves a cluster while anyone listens. Records are watched by metadata alone, objects by Helm's
// label, kind by kind, for the kinds some release has; of an object only its state is kept. The rule to keep:
// an idle cluster costs no request.
package observe

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
)

// Hub shares observers between streams.
type Hub struct {
	mu        sync.Mutex
	observers map[string]*shared
	renewals  map[renewal]time.Time
}

// renewal is the opening of new eyes on a cluster, for the sake of a resource.
type renewal struct {
	cluster  string
	resource schema.GroupVersionResource
}

type shared struct {
	observer *observer
	streams  int
}

// NewHub makes a hub without observers.
func NewHub() *Hub {
	return &Hub{observers: map[string]*shared{}, renewals: map[renewal]time.Time{}}
}

// Subscribe follows a cluster, which is observed from the first subscription to the last.
func (h *Hub) Subscribe(at *cluster.Cluster) *Subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.observers[at.ID]
	if s == nil {
		s = &shared{observer: newObserver(at)}
		s.observer.renew = func(resource schema.GroupVersionResource) { h.renew(renewal{at.ID, resource}, s) }
		s.observer.mayRenew = func(resource schema.GroupVersionResource) bool { return h.mayRenew(renewal{at.ID, resource}) }
		h.observers[at.ID] = s
		s.observer.start()
	}
	s.streams++
	subscription := s.observer.model.subscribe()
	subscription.leave = sync.OnceFunc(func() { h.leave(at.ID, s, subscription) })
	return subscription
}

// renew lets go of an observer whose streams are to begin anew.
func (h *Hub) renew(why renewal, s *shared) {
	h.mu.Lock()
	maps.DeleteFunc(h.renewals, func(_ renewal, at time.Time) bool { return time.Since(at) >= renewRest })
	h.renewals[why] = time.Now()
	if h.observers[why.cluster] == s {
		delete(h.observers, why.cluster)
	}
	h.mu.Unlock()
	s.observer.model.finish()
}

// mayRenew tells whether new eyes were not opened for the same reason a short while ago.
func (h *Hub) mayRenew(why renewal) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, before := h.renewals[why]
	return !before || time.Since(at) >= renewRest
}

func (h *Hub) leave(id string, s *shared, subscription *Subscription) {
	s.observer.model.unsubscribe(subscription)
	h.mu.Lock()
	s.streams--
	last := s.streams == 0
	if last && h.observers[id] == s {
		delete(h.observers, id)
	}
	h.mu.Unlock()
	if last {
		s.observer.stop()
	}
}
