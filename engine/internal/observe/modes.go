package observe

import "github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"

// narrow says that a kind may not be watched in all namespaces at once: it is watched where releases have it.
func (m *model) narrow(at watchKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kinds[at]
	if k == nil {
		return
	}
	m.narrowed[at.GroupVersionKind] = true
	delete(m.kinds, at)
	m.hands.end(at)
	for _, ones := range k.members {
		for _, one := range ones {
			one.absent = true
			one.kind = m.kindOf(m.place(one.ref, one.external))
			one.kind.members[one.key] = append(one.kind.members[one.key], one)
		}
	}
	m.tellOwners(k)
}

// lookAgain has every object of a kind read that cannot be watched.
func (m *model) lookAgain(at watchKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kinds[at]
	if k == nil {
		return
	}
	for _, ones := range k.members {
		for _, one := range ones {
			one.absent = true
			m.missing(one, true)
		}
	}
}

// tellOwners tells the releases that have a kind anew.
func (m *model) tellOwners(k *kind) {
	for _, ones := range k.members {
		for _, one := range ones {
			if one.release.whole {
				m.tellWhole(one.release)
			}
		}
	}
}

// mode is how closely a kind is looked at.
func (k *kind) mode() enginev1.WatchMode {
	switch {
	case k.blind && !k.unknown:
		return enginev1.WatchMode_POLL
	case k.at.namespace != "" && k.at.name == "" && !k.at.own:
		return enginev1.WatchMode_NAMESPACE
	}
	return enginev1.WatchMode_CLUSTER
}

// mode is how closely a release is looked at: its records, and the object that is seen least.
func (m *model) mode(rel *release) enginev1.WatchMode {
	mode := enginev1.WatchMode_CLUSTER
	if m.spaces != nil {
		mode = enginev1.WatchMode_NAMESPACE
		if s := m.spaces[rel.key.namespace]; s != nil && s.polled {
			mode = enginev1.WatchMode_POLL
		}
	}
	for _, one := range rel.all() {
		if one.kind != nil {
			mode = max(mode, one.kind.mode())
		}
	}
	return mode
}
