package observe

import "github.com/pilothouse-dev/pilothouse/engine/internal/inventory"

// label tells whether an object has Helm's label, which the watches of kinds ask for.
type label uint8

const (
	labelUnseen label = iota // nobody looked, or there is no object
	labelThere
	labelLost
)

// show takes how a member is, and follows it to the watch that will show its next change: the one of its kind
// while it has Helm's label, one of its own while it has not.
func (m *model) show(one *member, state objectState) {
	switch named := one.kind.at.name != ""; {
	case !one.external && !named && !one.kind.blind && state.label == labelLost:
		m.move(one, stray(one.ref))
		m.set(one, state)
		m.lookAt(one, true)
	case !one.external && named && state.label == labelThere:
		m.move(one, m.place(one.ref, false))
		m.set(one, state)
		m.lookAt(one, false)
	default:
		m.set(one, state)
	}
}

// stray is the watch of a release's own object that has lost its label.
func stray(ref inventory.Ref) watchKey {
	return watchKey{GroupVersionKind: ref.GVK(), namespace: ref.Namespace, name: ref.Name, own: true}
}

// move gives a member to another watch.
func (m *model) move(one *member, at watchKey) {
	to := m.kindOf(at)
	to.root = to.root || one.kind.root
	m.leave(one)
	one.kind = to
	to.members[one.key] = append(to.members[one.key], one)
}
