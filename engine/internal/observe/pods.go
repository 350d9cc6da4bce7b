package observe

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// workload names an object whatever version of its kind it is written in.
type workload struct {
	schema.GroupKind
	objectKey
}

// podOwners are the kinds whose pods tell why they are not current.
var podOwners = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}:  true,
	{Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}:   true,
	{Group: "apps", Kind: "ReplicaSet"}:  true,
	{Group: "batch", Kind: "Job"}:        true,
	{Kind: "ReplicationController"}:      true,
}

func (one *member) workload() workload {
	return workload{one.kind.at.GroupKind(), one.key}
}

// weigh counts the workloads that are not current, by namespace: there, and only there, pods are looked at.
func (m *model) weigh(one *member) {
	if one.kind == nil || !podOwners[one.kind.at.GroupKind()] {
		return
	}
	state := one.state.state
	failing := state == enginev1.ObjectState_IN_PROGRESS || state == enginev1.ObjectState_FAILED
	m.count(one, failing && !one.state.controlled)
}

// relieve forgets a member's trouble.
func (m *model) relieve(one *member) { m.count(one, false) }

func (m *model) count(one *member, troubled bool) {
	if one.troubled == troubled {
		return
	}
	one.troubled = troubled
	namespace := one.key.namespace
	if troubled {
		if m.troubled[namespace]++; m.troubled[namespace] == 1 {
			m.hands.pods(namespace, true)
		}
		return
	}
	if m.troubled[namespace]--; m.troubled[namespace] == 0 {
		delete(m.troubled, namespace)
		m.hands.pods(namespace, false)
	}
}

// troubledIn tells whether a namespace has a workload that is not current.
func (m *model) troubledIn(namespace string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.troubled[namespace] > 0
}

// putPod takes why a pod of a workload fails; an empty reason says that it does not.
func (m *model) putPod(of workload, pod, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.cause(of)
	switch {
	case reason != "":
		if m.pods[of] == nil {
			m.pods[of] = map[string]string{}
		}
		m.pods[of][pod] = reason
	case m.pods[of] == nil:
		return
	default:
		delete(m.pods[of], pod)
		if len(m.pods[of]) == 0 {
			delete(m.pods, of)
		}
	}
	if m.cause(of) == before {
		return
	}
	for _, one := range m.membersAt(of) {
		if one.known && one.release.whole && one.state.state != enginev1.ObjectState_CURRENT {
			m.tellMember(one)
		}
	}
}

// forgetPods forgets the pods of a namespace, which are no longer looked at.
func (m *model) forgetPods(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.pods, func(of workload, _ map[string]string) bool { return of.namespace == namespace })
}

// cause is why a workload's pods fail: of many, always the same one speaks.
func (m *model) cause(of workload) string {
	failing := m.pods[of]
	if len(failing) == 0 {
		return ""
	}
	first := slices.Min(slices.Collect(maps.Keys(failing)))
	return clip("pod " + first + " " + failing[first])
}

// membersAt are the members that are a workload.
func (m *model) membersAt(of workload) []*member {
	var out []*member
	for at, k := range m.kinds {
		if at.GroupKind() == of.GroupKind && (at.name == "" || at.own) && (at.namespace == "" || at.namespace == of.namespace) {
			out = append(out, k.members[of.objectKey]...)
		}
	}
	return out
}
