package observe

import (
	"context"
	"io"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

const (
	// debounce is how long news waits for more.
	debounce = 10 * time.Millisecond
	// A batch holds about this many records and object states.
	maxBatch = 1000
)

// recordKey names one record.
type recordKey struct {
	release  releaseKey
	revision int
}

// Subscription follows a model. It holds what has changed, not what it changed to: a slow reader skips what
// was overtaken, and costs no more than the model itself.
type Subscription struct {
	model  *model
	notify chan struct{}
	leave  func()

	// Guarded by the model's lock.
	reset bool
	// finished: the eyes are closed, and others may be opened.
	finished bool
	synced   bool // the reader has been told that it has every record
	failing  bool // the reader has been told of a fault
	records  map[recordKey]struct{}
	wholes   map[releaseKey]struct{}
	spaces   map[string]struct{}
	members  map[*member]struct{}
}

// subscribe starts with everything there is.
func (m *model) subscribe() *Subscription {
	s := &Subscription{
		model: m, notify: make(chan struct{}, 1), reset: true,
		records: map[recordKey]struct{}{}, wholes: map[releaseKey]struct{}{}, members: map[*member]struct{}{},
		spaces: map[string]struct{}{},
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.subscriptions[s] = struct{}{}
	for key, rel := range m.releases {
		for revision := range rel.records {
			s.records[recordKey{key, revision}] = struct{}{}
		}
		if rel.whole {
			s.wholes[key] = struct{}{}
		}
	}
	for namespace := range m.spaces {
		s.spaces[namespace] = struct{}{}
	}
	s.wake()
	return s
}

func (m *model) unsubscribe(s *Subscription) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.subscriptions, s)
	for key, held := range m.attentions {
		if held.from == s {
			m.disregardLocked(key, s)
		}
	}
}

func (s *Subscription) wake() {
	select {
	case s.notify <- struct{}{}:
	default:
	}
}

func (m *model) tellAll() {
	for s := range m.subscriptions {
		s.wake()
	}
}

func (m *model) tellRecord(r *record) {
	for s := range m.subscriptions {
		s.records[recordKey{r.release, r.revision}] = struct{}{}
		s.wake()
	}
}

func (m *model) tellWhole(rel *release) {
	for s := range m.subscriptions {
		s.wholes[rel.key] = struct{}{}
		s.wake()
	}
}

func (m *model) tellMember(one *member) {
	for s := range m.subscriptions {
		s.members[one] = struct{}{}
		s.wake()
	}
}

// fail and work tell that records cannot be seen, or can be again: without them nothing is known of any release.
func (m *model) fail(fault *enginev1.Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = fault
	m.tellAll()
}

func (m *model) work() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		m.fault = nil
		m.tellAll()
	}
}

// Next waits for news and gives it; io.EOF says that there is more to be seen with another subscription. Close the subscription when done.
func (s *Subscription) Next(ctx context.Context) (*enginev1.ObserveBatch, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.notify:
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(debounce):
		}
		if s.over() {
			return nil, io.EOF
		}
		if batch := s.take(); batch != nil {
			return batch, nil
		}
	}
}

func (s *Subscription) over() bool {
	s.model.mu.Lock()
	defer s.model.mu.Unlock()
	return s.finished
}

// Close ends the subscription.
func (s *Subscription) Close() { s.leave() }

// take builds a batch of what has changed, or none; what does not fit stays for the next.
func (s *Subscription) take() *enginev1.ObserveBatch {
	s.model.mu.Lock()
	defer s.model.mu.Unlock()
	batch := &enginev1.ObserveBatch{Reset_: s.reset}
	news := s.reset
	s.reset = false
	news = s.takeRecords(batch) || news
	if len(s.records) == 0 {
		if s.model.recordsSynced && !s.synced {
			s.synced, batch.RecordsSynced, news = true, true, true
		}
		news = s.takeSpaces(batch) || news
		news = s.takeObjects(batch) || news
	}
	news = s.takeFault(batch) || news
	if len(s.records)+len(s.wholes)+len(s.members) > 0 {
		s.wake()
	}
	if !news {
		return nil
	}
	return batch
}

func (s *Subscription) takeRecords(batch *enginev1.ObserveBatch) bool {
	for key := range s.records {
		if len(batch.Records) >= maxBatch {
			break
		}
		delete(s.records, key)
		change := &enginev1.ObserveBatch_RecordChange{}
		if rel := s.model.releases[key.release]; rel != nil && rel.records[key.revision] != nil {
			change.Record = rel.records[key.revision].proto()
		} else {
			change.Gone = true
			change.Record = &enginev1.Record{
				Namespace: key.release.namespace, Name: key.release.name, Revision: int32(key.revision),
			}
		}
		batch.Records = append(batch.Records, change)
	}
	return len(batch.Records) > 0
}

// takeSpaces comes after the records: a namespace that is synced has told them all.
func (s *Subscription) takeSpaces(batch *enginev1.ObserveBatch) bool {
	for namespace := range s.spaces {
		if held := s.model.spaces[namespace]; held != nil {
			batch.Namespaces = append(batch.Namespaces, &enginev1.NamespaceSight{
				Namespace: namespace, Synced: held.synced, Fault: held.fault,
			})
		}
	}
	clear(s.spaces)
	return len(batch.Namespaces) > 0
}

func (s *Subscription) takeObjects(batch *enginev1.ObserveBatch) bool {
	count := len(batch.Records)
	for key := range s.wholes {
		if count >= maxBatch {
			return true
		}
		delete(s.wholes, key)
		rel := s.model.releases[key]
		if rel == nil || !rel.whole || s.model.awaitsScalers(rel) {
			continue
		}
		objects := s.whole(rel)
		batch.Objects = append(batch.Objects, objects)
		count += len(objects.States) + 1
	}
	changed := map[*release]*enginev1.ReleaseObjects{}
	for one := range s.members {
		if count >= maxBatch {
			break
		}
		delete(s.members, one)
		if rel := one.release; one.current() && rel.whole && !one.state.controlled {
			if changed[rel] == nil {
				changed[rel] = rel.proto(false)
				batch.Objects = append(batch.Objects, changed[rel])
			}
			changed[rel].States = append(changed[rel].States, s.model.state(one))
			count++
		}
	}
	return len(batch.Objects) > 0
}

func (s *Subscription) takeFault(batch *enginev1.ObserveBatch) bool {
	switch failing := s.model.fault != nil; {
	case failing && !s.failing:
		s.failing, batch.Fault = true, s.model.fault
		return true
	case !failing && s.failing:
		s.failing, batch.Recovered = false, true
		return true
	}
	return false
}
