package inventory

import (
	"maps"
	"slices"
	"sync"
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
	listeners map[int]func(namespace, name string, number int)
	next      int
}

// NewStore makes a store; an empty directory means no disk cache.
func NewStore(dir string) *Store {
	return &Store{disk: &disk{dir: dir}, refs: map[revision][]Ref{}, listeners: map[int]func(string, string, int){}}
}

// Put remembers the inventory of a revision and tells the listeners. The slice is shared from here on and must
// not be changed.
func (s *Store) Put(namespace, name string, number int, refs []Ref) {
	s.mu.Lock()
	s.refs[revision{intern(namespace), name, number}] = refs
	listeners := slices.Collect(maps.Values(s.listeners))
	s.mu.Unlock()
	for _, listen := range listeners {
		listen(namespace, name, number)
	}
}

// Listen has every Put told to a function, until the returned one is called. The record an inventory belongs to
// may be seen before the inventory is put here.
func (s *Store) Listen(listen func(namespace, name string, number int)) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.next
	s.next++
	s.listeners[id] = listen
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
}

// Load reads the inventory of a record, by its Secret's uid and resourceVersion, from disk.
func (s *Store) Load(uid, resourceVersion string) ([]Ref, bool) {
	return s.disk.load(uid, resourceVersion)
}

// Save writes the inventory of a record to disk. The cache is a convenience: a failure is not one.
func (s *Store) Save(uid, resourceVersion string, refs []Ref) {
	s.disk.save(uid, resourceVersion, refs)
}

// Discard removes a record's inventory from disk.
func (s *Store) Discard(uid string) { s.disk.discard(uid) }
