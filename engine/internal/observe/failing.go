package observe

import "time"

// kindPatience is how long a kind may fail before its objects are said to be unknown: an API server that is being
// replaced refuses for a moment, and that is worth no news about every object it has.
const kindPatience = 5 * time.Second

// failKind takes why a kind cannot be listed or watched; whoever says so tries again. Only its own objects become
// unknown: what is known of releases comes from their records, so no release has to wait for it.
func (m *model) failKind(at watchKey, reason string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kinds[at]
	switch {
	case k == nil:
	case k.failedSince.IsZero() || m.outOfReach(at):
		k.failedSince = now // while nothing answers, that is said of the whole cluster
	case k.failure == "" && now.Sub(k.failedSince) >= kindPatience:
		k.failure = reason
		for _, ones := range k.members {
			for _, one := range ones {
				m.set(one, unknown(k.failure))
			}
		}
	}
}

// workKind takes that a kind can be seen again, and tells whether it had failed.
func (m *model) workKind(at watchKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kinds[at]
	if k == nil || k.failedSince.IsZero() {
		return false
	}
	told := k.failure != ""
	k.forgive()
	if told {
		// A watch that goes on where it stopped does not show again what it has shown.
		for _, ones := range k.members {
			for _, one := range ones {
				m.lookAt(one, true)
			}
		}
	}
	return true
}

func (k *kind) forgive() { k.failedSince, k.failure = time.Time{}, "" }

// lookAt takes what a member's watch shows of it now, and has it looked for where that is nothing.
func (m *model) lookAt(one *member, urgent bool) {
	k := one.kind
	state, shown := k.objects[one.key]
	switch {
	case k.failure != "":
		m.set(one, unknown(k.failure))
	case shown && state.by == m.judgeOf(one):
		m.set(one, state)
	default:
		one.absent = true
		if k.ready {
			m.missing(one, urgent)
		}
	}
}

// outOfReach tells whether records cannot be seen either, and releases know that.
func (m *model) outOfReach(at watchKey) bool {
	if at.name != "" && !at.own {
		return m.fault != nil // who looks at an object of others may have no records, and so no namespace that fails
	}
	if m.fault != nil || len(m.spaces) == 0 {
		return m.fault != nil
	}
	if at.namespace != "" {
		its := m.spaces[at.namespace]
		return its != nil && its.fault != nil
	}
	for _, one := range m.spaces {
		if one.fault == nil {
			return false // it answers
		}
	}
	return true
}
