package observe

import "github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"

// whole is everything about a release's objects.
func (s *Subscription) whole(rel *release) *enginev1.ReleaseObjects {
	m := s.model
	out := rel.proto(true)
	out.Watch, out.Token = m.mode(rel), m.token(rel)
	for _, one := range rel.members {
		delete(s.members, one)
		if !one.state.controlled {
			out.States = append(out.States, m.state(one))
		}
	}
	for _, one := range rel.external {
		out.External = append(out.External, m.state(one))
	}
	out.External = append(out.External, m.scaling(rel)...)
	return out
}

// current tells whether a member is still one of its release's.
func (one *member) current() bool {
	if one.kind == nil {
		return false
	}
	for _, other := range one.kind.members[one.key] {
		if other == one {
			return true
		}
	}
	return false
}

// state is how a member is; a workload that is not current says why through its pods.
func (m *model) state(one *member) *enginev1.ObjectState {
	message := one.state.message
	if one.kind != nil && one.state.state != enginev1.ObjectState_CURRENT {
		if cause := m.cause(one.workload()); cause != "" {
			message = cause
		}
	}
	out := &enginev1.ObjectState{
		Ref: one.ref.Proto(), State: one.state.state, Message: message, Generation: one.state.generation,
	}
	if out.Altered = m.altered(one); out.Altered != 0 {
		out.Sight, out.Scaled = one.state.trace.Sight, len(m.scalersOf[one.workload()]) > 0
		if seen, known := m.scalersAt(one.key.namespace); out.Scaled || known && !seen {
			out.Sight = one.state.trace.Edit // scaling is not worth a look: it is theirs, or counts as such
		}
	}
	return out
}

func (rel *release) proto(complete bool) *enginev1.ReleaseObjects {
	return &enginev1.ReleaseObjects{
		Namespace: rel.key.namespace, Name: rel.key.name, Revision: int32(max(rel.revision, 0)), Complete: complete,
	}
}
