package observe

import (
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

// kind is one kind of object that some release has, as far as one watch goes.
type kind struct {
	at      watchKey
	ready   bool // the watch has shown everything, or there is no watch
	blind   bool // there is no watch
	unknown bool // because the API server does not know the kind
	root    bool // cluster-scoped
	scales  bool // its objects can be scaled
	// failedSince is when it stopped to be seen; failure is why, once its members have been told to be unknown.
	failedSince time.Time
	failure     string

	objects map[objectKey]objectState
	members map[objectKey][]*member
}

// track makes refs the members of a release. Revision 0 means none.
func (m *model) track(rel *release, revision int, refs []inventory.Ref, saved string) {
	before := rel.all()
	rel.revision, rel.refs, rel.unresolved, rel.whole, rel.saved = revision, refs, 0, false, saved
	rel.members, rel.external = nil, nil
	for _, ref := range refs {
		rel.members = append(rel.members, m.join(rel, ref, false))
	}
	if revision != 0 {
		m.recall(rel)
		m.joinExternal(rel)
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

func (m *model) join(rel *release, ref inventory.Ref, external bool) *member {
	k := m.kindOf(m.place(ref, external))
	if k.root {
		ref.Namespace = ""
	}
	one := &member{release: rel, ref: ref, kind: k, key: objectKey{ref.Namespace, ref.Name}, external: external}
	switch state, ok := k.objects[one.key]; {
	case k.failure != "":
		one.state, one.known = unknown(k.failure), true
	case ok && state.by == m.judgeOf(one):
		one.state, one.known = state, true
		m.weigh(one)
	default:
		one.absent = true
		rel.unresolved++
	}
	k.members[one.key] = append(k.members[one.key], one)
	if k.scales {
		m.hands.scalers(ref.Namespace)
	}
	return one
}

// place is the watch that shows an object.
func (m *model) place(ref inventory.Ref, external bool) watchKey {
	at := watchKey{GroupVersionKind: ref.GVK()}
	switch {
	case external:
		at.namespace, at.name = ref.Namespace, ref.Name
	case m.narrowed[at.GroupVersionKind]:
		at.namespace = ref.Namespace
	}
	return at
}

func (m *model) kindOf(at watchKey) *kind {
	k := m.kinds[at]
	if k == nil {
		k = &kind{at: at, objects: map[objectKey]objectState{}, members: map[objectKey][]*member{}}
		m.kinds[at] = k
		m.hands.watch(at)
	} else if k.blind {
		m.hands.retry(at)
	}
	return k
}

func (m *model) leave(one *member) {
	k := one.kind
	if k == nil {
		return
	}
	m.relieve(one)
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
	if k.at.crowd() {
		delete(k.objects, one.key) // nobody's from now on, and not looked after
	}
	if len(k.members) == 0 {
		m.hands.unwatch(k.at)
	}
}

// settle looks for the members the watch does not show, once no action is under way that may be about to make
// them, and has the inventory of a finished revision written down.
func (m *model) settle(rel *release) {
	m.settleExternal(rel)
	if rel.newest == nil || rel.newest.pending() || rel.revision != rel.newest.revision {
		return
	}
	for _, one := range rel.members {
		if one.absent && one.kind.ready {
			m.missing(one, false)
		}
		if m.altered(one) != 0 {
			m.tellMember(one)
		}
	}
	if rel.refs != nil && rel.saved != rel.newest.secretState && !rel.newest.uninstalling() {
		rel.saved = rel.newest.secretState
		m.hands.remember(rel.newest, rel.refs)
	}
}

// settleExternal does so for objects of others: whatever is being done to the release, it is not done to them.
func (m *model) settleExternal(rel *release) {
	for _, one := range rel.external {
		if one.absent && one.kind.ready {
			m.missing(one, false)
		}
	}
}

// missing has an object read before it is said to be gone: it may only have lost its label.
func (m *model) missing(one *member, urgent bool) {
	newest := one.release.newest
	switch {
	case one.external && one.gone():
		m.set(one, notFound)
	case one.external:
		m.hands.check(one.kind.at, one.key, urgent)
	case newest == nil || newest.pending():
		// Whoever is changing the release will be done, and then settle looks.
	case newest.uninstalling():
		m.set(one, notFound) // as expected, and a request per object would be a waste
	case one.gone():
		m.set(one, notFound)
	default:
		m.hands.check(one.kind.at, one.key, urgent)
	}
}

// set takes a member's state, from the watch or from a read.
func (m *model) set(one *member, state objectState) {
	one.absent = false
	was, wasAltered := one.state, m.altered(one)
	one.state = state
	m.weigh(one)
	rel := one.release
	if !one.known {
		one.known = true
		if rel.unresolved--; rel.unresolved == 0 {
			rel.whole = true
			m.tellWhole(rel)
		}
		return
	}
	news := state.tells(was)
	if altered := m.altered(one); altered != wasAltered || altered != 0 && state.trace.Sight != was.trace.Sight {
		news = true
	}
	switch {
	case !rel.whole || !news:
	case state.controlled != was.controlled, one.external: // only the whole can tell that
		m.tellWhole(rel)
	default:
		m.tellMember(one)
	}
}

// all are a release's members, those of others included.
func (rel *release) all() []*member {
	if len(rel.external) == 0 {
		return rel.members
	}
	return append(rel.members[:len(rel.members):len(rel.members)], rel.external...)
}

// gone tells whether a member's watch, which asks for it by name and for no label, does not have it. That of a crowd
// says nothing of those who joined it later.
func (one *member) gone() bool {
	k := one.kind
	_, shown := k.objects[one.key]
	return k.at.name != "" && k.ready && !k.blind && !shown
}
