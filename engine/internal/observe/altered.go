package observe

import (
	"encoding/json"

	"github.com/pilothouse-dev/pilothouse/engine/internal/drift"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// look notes by whom an object was written, and whether it has Helm's label. Objects of controllers are nobody's here.
func (s *objectState) look(head *raw.Head, data []byte, stateless bool) {
	managed := head.Managed()
	if s.controlled {
		return
	}
	var object struct {
		Metadata struct {
			Generation  int64             `json:"generation"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if json.Unmarshal(data, &object) != nil {
		return
	}
	s.label = labelLost
	if object.Metadata.Labels[managedBy] == helm {
		s.label = labelThere
	}
	s.trace = drift.Of(managed, drift.Meta{
		Generation: object.Metadata.Generation, ResourceVersion: head.ResourceVersion,
		Labels: object.Metadata.Labels, Annotations: object.Metadata.Annotations, Stateless: stateless,
	})
}

// altered tells by whose fields an object is other than when it was applied; 0: it is as applied, or nothing can
// be said while its release is being changed. An object of which it is not known how it was applied is altered
// until it has been compared.
func (m *model) altered(one *member) uint64 {
	rel, trace := one.release, one.state.trace
	switch {
	case one.kind == nil || one.external || !one.known || one.state.controlled:
		return 0
	case rel.newest == nil || rel.newest.pending() || rel.newest.uninstalling() || rel.revision != rel.newest.revision:
		return 0
	case one.state.state == enginev1.ObjectState_TERMINATING:
		return 0 // it will be gone
	case trace.Own == one.applied.Own || trace.Version < one.applied.Version:
		return 0
	}
	return trace.Own
}

// recall takes how the members of a release were applied, as far as that is remembered.
func (m *model) recall(rel *release) {
	held := m.hands.traces(rel.key, rel.revision)
	if len(held) != len(rel.members) {
		return
	}
	for i, one := range rel.members {
		one.applied.Own = held[i]
	}
}

// setApplied is told how objects of a revision were when they were applied.
func (m *model) setApplied(key releaseKey, revision int, traces map[inventory.Ref]drift.Trace) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rel := m.releases[key]
	if rel == nil || rel.revision != revision {
		return // it is remembered, and recalled in time
	}
	for _, one := range rel.members {
		trace, ok := traces[one.ref]
		if !ok {
			continue
		}
		was := m.altered(one)
		if one.applied.Own != trace.Own {
			rel.saved = ""
		}
		one.applied = trace
		if m.altered(one) != was {
			m.tellMember(one)
		}
	}
	if rel.saved == "" {
		m.settle(rel)
	}
}
