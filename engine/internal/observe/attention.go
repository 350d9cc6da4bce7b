package observe

import (
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

// attention is what the brain said of a release it looks after.
type attention struct {
	from     *Subscription
	said     *enginev1.Attention
	judges   map[schema.GroupVersionKind]*judge
	external []inventory.Ref
}

func newAttention(from *Subscription, said *enginev1.Attention) *attention {
	a := &attention{from: from, said: said}
	if checks := said.GetHealthChecks(); len(checks) > 0 {
		a.judges = make(map[schema.GroupVersionKind]*judge, len(checks))
		for _, check := range checks {
			a.judges[schema.FromAPIVersionAndKind(check.GetApiVersion(), check.GetKind())] = newJudge(check)
		}
	}
	for _, ref := range said.GetExternal() {
		a.external = append(a.external, inventory.NewRef(ref.GetApiVersion(), ref.GetKind(), ref.GetNamespace(), ref.GetName()))
	}
	return a
}

// Attend takes what the brain looks after; it is forgotten with the subscription.
func (s *Subscription) Attend(news []*enginev1.Attention) {
	for _, said := range news {
		key := releaseKey{intern(said.GetNamespace()), said.GetName()}
		if said.GetGone() {
			s.model.disregard(key, s)
			continue
		}
		s.model.attend(key, newAttention(s, said)) // compiled before the model is locked
	}
}

func (m *model) attend(key releaseKey, now *attention) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.subscriptions[now.from]; !there {
		return // its stream has ended meanwhile
	}
	held := m.attentions[key]
	m.attentions[key] = now
	if now.alone() {
		m.standAlone(key)
	} else {
		m.openSpace(key.namespace)
	}
	if held != nil && proto.Equal(held.said, now.said) {
		now.judges = held.judges // what they have judged stands
		return
	}
	if rel := m.releases[key]; rel != nil && held == nil && !now.alone() {
		m.consider(rel)
		return
	}
	m.attendAnew(key)
}

func (m *model) disregard(key releaseKey, from *Subscription) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disregardLocked(key, from)
}

func (m *model) disregardLocked(key releaseKey, from *Subscription) {
	held := m.attentions[key]
	if held == nil || held.from != from {
		return
	}
	delete(m.attentions, key)
	if held.alone() {
		m.leaveAlone(key)
		return
	}
	m.closeSpace(key.namespace)
	if rel := m.releases[key]; rel != nil {
		m.consider(rel)
	}
}

// attendAnew looks at a release as it is now to be looked at.
func (m *model) attendAnew(key releaseKey) {
	rel := m.releases[key]
	if rel == nil || rel.revision == 0 {
		return
	}
	before := rel.external
	for _, one := range before {
		if !one.known {
			rel.unresolved--
		}
	}
	rel.external = nil
	m.joinExternal(rel)
	for _, one := range before {
		m.leave(one)
	}
	for _, one := range rel.members {
		if one.kind != nil && one.known && one.kind.failure == "" && one.state.by != m.judgeOf(one) {
			one.absent = true
			m.missing(one, true)
		}
	}
	if rel.unresolved == 0 {
		rel.whole = true
		m.tellWhole(rel)
	}
	m.settleExternal(rel)
}

func (m *model) joinExternal(rel *release) {
	if held := m.attentions[rel.key]; held != nil {
		for _, ref := range held.external {
			rel.external = append(rel.external, m.join(rel, ref, true))
		}
	}
}

// judgeOf is who judges a member: nil is kstatus.
func (m *model) judgeOf(one *member) *judge {
	if held := m.attentions[one.release.key]; held != nil && one.kind != nil {
		return held.judges[one.kind.at.GroupVersionKind]
	}
	return nil
}

// judgeAt is who judges an object that a watch shows.
func (m *model) judgeAt(at watchKey, key objectKey) *judge {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kinds[at]; k != nil {
		for _, one := range k.members[key] {
			if judge := m.judgeOf(one); judge != nil {
				return judge
			}
		}
	}
	return nil
}

// token names what a release was asked to be looked at with.
func (m *model) token(rel *release) string {
	if held := m.attentions[rel.key]; held != nil {
		return held.said.GetToken()
	}
	return ""
}
