package inventory

import (
	"maps"
	"slices"
	"sync"

	"github.com/pilothouse-dev/pilothouse/engine/internal/drift"
)

// revision names one revision of one release.
type revision struct {
	namespace, name string
	number          int
}

// Store holds the inventories of a cluster's releases: in memory those of this run, on disk those of earlier
// ones. Safe for concurrent use.
type Store struct {
	disk *disk

	mu        sync.RWMutex
	refs      map[revision][]Ref
	traces    map[revision][]uint64 // as long as refs
	listeners map[int]Listener
	next      int
}

// Listener is told of what is put into a store.
type Listener struct {
	// Put is told that an inventory is known.
	Put func(namespace, name string, number int)
	// Applied is told how objects of a revision were when they were applied.
	Applied func(namespace, name string, number int, traces map[Ref]drift.Trace)
}

// NewStore makes a store; an empty directory means no disk cache.
func NewStore(dir string) *Store {
	return &Store{
		disk: &disk{dir: dir}, refs: map[revision][]Ref{}, traces: map[revision][]uint64{}, listeners: map[int]Listener{},
	}
}

// Put remembers the inventory of a revision and tells the listeners. The slice is shared from here on and must
// not be changed.
func (s *Store) Put(namespace, name string, number int, refs []Ref) {
	s.mu.Lock()
	s.refs[revision{intern(namespace), name, number}] = refs
	listeners := slices.Collect(maps.Values(s.listeners))
	s.mu.Unlock()
	for _, listener := range listeners {
		listener.Put(namespace, name, number)
	}
}

// Restore remembers what Load gave.
func (s *Store) Restore(namespace, name string, number int, refs []Ref, traces []uint64) {
	key := revision{intern(namespace), name, number}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refs[key] = refs
	if traces != nil {
		s.traces[key] = traces
	}
}

// Applied remembers how objects of a revision were when they were applied, and tells the listeners.
func (s *Store) Applied(namespace, name string, number int, traces map[Ref]drift.Trace) {
	key := revision{intern(namespace), name, number}
	s.mu.Lock()
	refs := s.refs[key]
	held := make([]uint64, len(refs)) // anew: the old one may be in use
	copy(held, s.traces[key])
	for i, ref := range refs {
		trace, ok := traces[ref]
		if !ok {
			ref.Namespace = "" // the inventory may have been made before the kind's scope was known
			trace, ok = traces[ref]
		}
		if ok {
			held[i] = trace.Own
		}
	}
	s.traces[key] = held
	listeners := slices.Collect(maps.Values(s.listeners))
	s.mu.Unlock()
	for _, listener := range listeners {
		listener.Applied(namespace, name, number, traces)
	}
}

// Traces gives the Own of each object of a revision when it was applied, in the order of the inventory; 0: unknown.
func (s *Store) Traces(namespace, name string, number int) []uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.traces[revision{namespace, name, number}]
}

// Listen has everything told to a listener, until the returned function is called. The record an inventory belongs to
// may be seen before the inventory is put here.
func (s *Store) Listen(listener Listener) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.next
	s.next++
	s.listeners[id] = listener
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, id)
	}
}

// Get gives the inventory of a revision, if it is known.
func (s *Store) Get(namespace, name string, number int) ([]Ref, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	refs, ok := s.refs[revision{namespace, name, number}]
	return refs, ok
}

// Forget drops a revision whose record was pruned or superseded from memory.
func (s *Store) Forget(namespace, name string, number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refs, revision{namespace, name, number})
	delete(s.traces, revision{namespace, name, number})
}

// Load reads the inventory of a record, by its Secret's uid and resourceVersion, from disk, with the traces.
func (s *Store) Load(uid, resourceVersion string) ([]Ref, []uint64, bool) {
	return s.disk.load(uid, resourceVersion)
}

// Save writes the inventory of a record to disk. The cache is a convenience: a failure is not one.
func (s *Store) Save(uid, resourceVersion string, refs []Ref, traces []uint64) {
	s.disk.save(uid, resourceVersion, refs, traces)
}

// Discard removes a record's inventory from disk.
func (s *Store) Discard(uid string) { s.disk.discard(uid) }
