package observe

import "github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"

// space is a namespace whose records are looked at by themselves, because those of all namespaces may not be.
type space struct {
	synced bool
	polled bool
	fault  *enginev1.Fault
}

// narrowRecords says that records may not be watched in all namespaces at once. What a list may have shown is
// forgotten: nobody would notice it grow old.
func (m *model) narrowRecords() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.spaces != nil {
		return
	}
	for _, rel := range m.releases {
		for _, r := range rel.records {
			m.drop(r)
		}
	}
	m.spaces, m.recordsSynced = map[string]*space{}, false
	for s := range m.subscriptions {
		s.reset, s.synced = true, false
		s.wake()
	}
	for key, held := range m.attentions {
		if !held.alone() {
			m.openSpace(key.namespace)
		}
	}
	// The others come again with their records; who has none is told again now, since all was forgotten.
	for _, rel := range m.releases {
		if rel.whole {
			m.tellWhole(rel)
		}
	}
}

func (m *model) openSpace(namespace string) {
	if m.spaces != nil && m.spaces[namespace] == nil {
		m.spaces[namespace] = &space{}
		m.hands.records(namespace, true)
	}
}

func (m *model) closeSpace(namespace string) {
	if m.spaces[namespace] == nil {
		return
	}
	for key := range m.attentions {
		if key.namespace == namespace {
			return
		}
	}
	delete(m.spaces, namespace)
	m.hands.records(namespace, false)
	for key, rel := range m.releases {
		if key.namespace == namespace {
			for _, r := range rel.records {
				m.drop(r)
			}
		}
	}
}

// see takes how a namespace's records are seen. A fault does not unsee what was seen.
func (m *model) see(namespace string, synced bool, fault *enginev1.Fault) {
	s := m.spaces[namespace]
	if s == nil || s.synced == (s.synced || synced) && fault == nil && s.fault == nil {
		return
	}
	s.synced = s.synced || synced
	s.fault = fault
	for reader := range m.subscriptions {
		reader.spaces[namespace] = struct{}{}
		reader.wake()
	}
}

// failSpace tells that a namespace's records cannot be seen now.
func (m *model) failSpace(namespace string, fault *enginev1.Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.see(namespace, false, fault)
}

// workSpace tells that they can be again.
func (m *model) workSpace(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.see(namespace, false, nil)
}

// pollSpace tells that a namespace's records are listed now and then.
func (m *model) pollSpace(namespace string, polled bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.spaces[namespace]
	if s == nil || s.polled == polled {
		return
	}
	s.polled = polled
	for key, rel := range m.releases {
		if key.namespace == namespace && rel.whole {
			m.tellWhole(rel)
		}
	}
}
