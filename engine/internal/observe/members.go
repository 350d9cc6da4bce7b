package observe

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

// kind is one kind of object that some release has.
type kind struct {
	gvk     schema.GroupVersionKind
	ready   bool // the watch has shown everything, or there is no watch
	blind   bool // there is no watch
	unknown bool // because the API server does not know the kind
	root    bool // cluster-scoped
	objects map[objectKey]objectState
	members map[objectKey][]*member
}

// track makes refs the members of a release. Revision 0 means none.
func (m *model) track(rel *release, revision int, refs []inventory.Ref, saved string) {
	before := rel.members
	rel.revision, rel.refs, rel.members, rel.unresolved, rel.whole, rel.saved = revision, refs, nil, 0, false, saved
	for _, ref := range refs {
		m.join(rel, ref)
	}
	// Only now, so that a kind both revisions have is not let go in between.
	for _, old := range before {
		m.leave(old)
	}
	if revision == 0 {
		return
	}
	if rel.unresolved == 0 {
		rel.whole = true
		m.tellWhole(rel)
	}
	m.settle(rel)
}

func (m *model) join(rel *release, ref inventory.Ref) {
	gvk := ref.GVK()
	k := m.kinds[gvk]
	if k == nil {
		k = &kind{gvk: gvk, objects: map[objectKey]objectState{}, members: map[objectKey][]*member{}}
		m.kinds[gvk] = k
		m.hands.watch(gvk)
	} else if k.blind {
		m.hands.retry(gvk)
	}
	if k.root {
		ref.Namespace = ""
	}
	one := &member{release: rel, ref: ref, kind: k, key: objectKey{ref.Namespace, ref.Name}}
	if state, ok := k.objects[one.key]; ok {
		one.state, one.known = state, true
	} else {
		one.absent = true
		rel.unresolved++
	}
	k.members[one.key] = append(k.members[one.key], one)
	rel.members = append(rel.members, one)
}

func (m *model) leave(one *member) {
	k := one.kind
	if k == nil {
		return
	}
	others := k.members[one.key]
	kept := others[:0]
	for _, other := range others {
		if other != one {
			kept = append(kept, other)
		}
	}
	if len(kept) > 0 {
		k.members[one.key] = kept
		return
	}
	delete(k.members, one.key)
	if len(k.members) == 0 {
		m.hands.unwatch(k.gvk)
	}
}

// settle looks for the members the watch does not show, once no action is under way that may be about to make
// them, and has the inventory of a finished revision written down.
func (m *model) settle(rel *release) {
	if rel.newest == nil || rel.newest.pending() || rel.revision != rel.newest.revision {
		return
	}
	for _, one := range rel.members {
		if one.absent && one.kind.ready {
			m.missing(one, false)
		}
	}
	if rel.refs != nil && rel.saved != rel.newest.secretState && !rel.newest.uninstalling() {
		rel.saved = rel.newest.secretState
		m.hands.remember(rel.newest, rel.refs)
	}
}

// missing has an object read before it is said to be gone: it may only have lost its label.
func (m *model) missing(one *member, urgent bool) {
	newest := one.release.newest
	switch {
	case newest == nil || newest.pending():
		// Whoever is changing the release will be done, and then settle looks.
	case newest.uninstalling():
		m.set(one, notFound) // as expected, and a request per object would be a waste
	default:
		m.hands.check(one.kind.gvk, one.key, urgent)
	}
}

// set takes a member's state, from the watch or from a read.
func (m *model) set(one *member, state objectState) {
	one.absent = false
	was := one.state
	one.state = state
	rel := one.release
	if !one.known {
		one.known = true
		if rel.unresolved--; rel.unresolved == 0 {
			rel.whole = true
			m.tellWhole(rel)
		}
		return
	}
	switch {
	case !rel.whole || !state.tells(was):
	case state.controlled != was.controlled: // comes or goes: only the whole can tell that
		m.tellWhole(rel)
	default:
		m.tellMember(one)
	}
}
