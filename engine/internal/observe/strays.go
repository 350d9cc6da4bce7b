package observe

import (
	"slices"

	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

// label tells whether an object has Helm's label, which the watches of kinds ask for.
type label uint8

const (
	labelUnseen label = iota // nobody looked, or there is no object
	labelThere
	labelLost
)

// show takes how a member is, and follows it to the watch that will show its next change: the one of its kind
// while it has Helm's label, one of its own, or one of many like it, while it has not.
func (m *model) show(one *member, state objectState) {
	switch strayed := one.kind.at.own; {
	case !one.external && !strayed && !one.kind.blind && state.label == labelLost:
		m.move(one, m.strayPlace(one.ref))
		m.set(one, state)
		m.lookAt(one, true)
	case !one.external && strayed && state.label == labelThere:
		m.move(one, m.place(one.ref, false))
		m.set(one, state)
		m.lookAt(one, false)
	default:
		m.set(one, state)
	}
}

// strayLimit is how many objects of a kind and namespace are watched by name: who takes the label off one may take it
// off thousands, and each watch costs the API server.
const strayLimit = 8

// stray is the watch of a release's own object that has lost its label.
func stray(ref inventory.Ref) watchKey {
	return watchKey{GroupVersionKind: ref.GVK(), namespace: ref.Namespace, name: ref.Name, own: true}
}

// crowd tells whether a watch shows everything of a kind and namespace, labelled or not, for many strays at once.
func (at watchKey) crowd() bool { return at.own && at.name == "" }

// strayPlace is the watch that shows an object without the label. One too many for watches by name makes a crowd of
// them all, which they stay as long as there is one of them.
func (m *model) strayPlace(ref inventory.Ref) watchKey {
	alone := stray(ref)
	crowd := alone
	crowd.name = ""
	switch {
	case m.kinds[crowd] != nil:
		return crowd
	case m.kinds[alone] != nil:
		return alone
	}
	var others []*kind
	for at, k := range m.kinds {
		if at.own && at.GroupVersionKind == alone.GroupVersionKind && at.namespace == alone.namespace {
			others = append(others, k)
		}
	}
	if len(others) < strayLimit {
		return alone
	}
	for _, k := range others {
		m.gather(k, crowd)
	}
	return crowd
}

// gather gives the members of a watch by name to the one of their crowd.
func (m *model) gather(k *kind, crowd watchKey) {
	for _, ones := range k.members {
		for _, one := range slices.Clone(ones) {
			m.move(one, crowd)
			m.set(one, one.state)
			m.lookAt(one, false)
		}
	}
}

// cares tells whether a watch needs to know how an object is: of a crowd's, most are nobody's.
func (m *model) cares(at watchKey, key objectKey) bool {
	if !at.crowd() {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kinds[at]
	return k != nil && len(k.members[key]) > 0
}

// move gives a member to another watch.
func (m *model) move(one *member, at watchKey) {
	to := m.kindOf(at)
	to.root = to.root || one.kind.root
	m.leave(one)
	one.kind = to
	to.members[one.key] = append(to.members[one.key], one)
}
