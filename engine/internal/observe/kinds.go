package observe

import "slices"

// putObject takes an object's state from its kind's watch.
func (m *model) putObject(at watchKey, key objectKey, state objectState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kinds[at]; k != nil {
		m.putState(k, key, state)
	}
}

func (m *model) putState(k *kind, key objectKey, state objectState) {
	if k.at.crowd() && len(k.members[key]) == 0 {
		return // it has just been left
	}
	if ones := k.members[key]; len(ones) > 0 {
		key = ones[0].key // the same names, which are in memory already
	}
	if state.controlled {
		delete(k.objects, key) // thousands of Pods carry the label; none is kept
	} else {
		k.objects[key] = state
	}
	for _, one := range slices.Backward(k.members[key]) { // which may shrink meanwhile
		if state.by != m.judgeOf(one) {
			// Computed before its release said how, or by metadata alone.
			one.absent = true
			m.missing(one, true)
			continue
		}
		m.show(one, state)
	}
}

// dropObject takes an object's disappearance from its kind's watch.
func (m *model) dropObject(at watchKey, key objectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kinds[at]; k != nil {
		m.dropState(k, key)
	}
}

func (m *model) dropState(k *kind, key objectKey) {
	delete(k.objects, key)
	for _, one := range k.members[key] {
		one.absent = true
		m.missing(one, true)
	}
}

// replaceObjects takes a complete list of a kind's labelled objects.
func (m *model) replaceObjects(at watchKey, objects map[objectKey]objectState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kinds[at]
	if k == nil {
		return
	}
	for key := range k.objects {
		if _, ok := objects[key]; !ok {
			m.dropState(k, key)
		}
	}
	if at.crowd() && k.ready {
		// Who joined late was read once, and is among its objects only when it has changed since.
		for key := range k.members {
			if _, ok := objects[key]; !ok {
				m.dropState(k, key)
			}
		}
	}
	for key, state := range objects {
		m.putState(k, key, state)
	}
	m.becomeReady(k)
}

// scope takes what discovery says about a kind, before its watch begins.
func (m *model) scope(at watchKey, root bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kinds[at]
	if k == nil || k.root == root {
		return
	}
	// An inventory made before the kind was known took it for namespaced.
	k.root = root
	members := k.members
	k.members = make(map[objectKey][]*member, len(members))
	for _, ones := range members {
		for _, one := range ones {
			if root {
				one.ref.Namespace, one.key.namespace = "", ""
			}
			k.members[one.key] = append(k.members[one.key], one)
		}
	}
}

// blind says that a kind cannot be watched: its members are read instead, once.
func (m *model) blind(at watchKey, unknown bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kinds[at]
	if k == nil {
		return
	}
	k.blind, k.unknown, k.ready = true, unknown, false
	k.forgive()
	m.tellOwners(k) // of the mode
	clear(k.objects)
	for _, ones := range k.members {
		for _, one := range ones {
			one.absent = true
		}
	}
	m.becomeReady(k)
}

// again forgets that a kind could not be watched.
func (m *model) again(at watchKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kinds[at]; k != nil && k.blind {
		k.blind, k.unknown, k.ready = false, false, false
		for _, ones := range k.members {
			for _, one := range ones {
				one.absent = true // whatever was read when blind is old news
			}
		}
		m.hands.watch(at)
	}
}

// unknownKinds are those the API server did not know when it was asked.
func (m *model) unknownKinds() []watchKey {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []watchKey
	for at, k := range m.kinds {
		if k.unknown {
			out = append(out, at)
		}
	}
	return out
}

// becomeReady looks for the members that are not among the first objects shown; later ones are noticed as they go.
func (m *model) becomeReady(k *kind) {
	if k.ready {
		return
	}
	k.ready = true
	for _, ones := range k.members {
		for _, one := range ones {
			if one.absent && one.release.upToDate() {
				m.missing(one, k.blind)
			}
		}
	}
}

// retire drops a kind unless some release has it again.
func (m *model) retire(at watchKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kinds[at]; k != nil && len(k.members) == 0 {
		delete(m.kinds, at)
		m.hands.end(at)
	}
}

// unseen tells whether an object still has to be read: some release has it, and the watch does not show it.
func (m *model) unseen(at watchKey, key objectKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kinds[at]
	if k == nil {
		return false
	}
	for _, one := range k.members[key] {
		if one.absent {
			return true
		}
	}
	return false
}

// checked takes what a read found, unless the watch has shown the object meanwhile.
func (m *model) checked(at watchKey, key objectKey, state objectState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kinds[at]
	if k == nil {
		return
	}
	shown, seen := k.objects[key]
	for _, one := range slices.Backward(k.members[key]) {
		switch judge := m.judgeOf(one); {
		case !one.absent || seen && shown.by == judge:
		case state.by != judge && !state.unjudged():
			m.missing(one, true) // by what was asked before
		default:
			m.show(one, state)
		}
	}
}
