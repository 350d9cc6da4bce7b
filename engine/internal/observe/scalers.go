package observe

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

const (
	scalerVersion = "autoscaling/v2"
	scalerKind    = "HorizontalPodAutoscaler"
)

// scalerObject is all that is kept of a HorizontalPodAutoscaler.
type scalerObject struct {
	raw.Head
	of    workload
	state objectState
}

func decodeScaler(head raw.Head, data []byte) (runtime.Object, error) {
	var scaler struct {
		Spec struct {
			Target owner `json:"scaleTargetRef"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(data, &scaler); err != nil {
		return nil, err
	}
	state, err := viewer{foreign: true}.compute(data)
	if err != nil {
		return nil, err
	}
	target := scaler.Spec.Target
	key := objectKey{intern(head.Namespace), target.Name}
	return &scalerObject{Head: head, of: workload{target.gvk().GroupKind(), key}, state: state}, nil
}

// scalerStore passes autoscalers to the model.
type scalerStore struct {
	model     *model
	namespace string
}

func (s *scalerStore) Add(object any) error {
	one := object.(*scalerObject)
	s.model.putScaler(one.of, one.Name, one.state)
	return nil
}

func (s *scalerStore) Update(object any) error { return s.Add(object) }

func (s *scalerStore) Delete(object any) error {
	one := object.(*scalerObject)
	s.model.dropScaler(objectKey{one.Namespace, one.Name}, nil)
	return nil
}

func (s *scalerStore) Replace(objects []any, _ string) error {
	seen := make(map[objectKey]bool, len(objects))
	for _, object := range objects {
		one := object.(*scalerObject)
		seen[objectKey{one.Namespace, one.Name}] = true
		_ = s.Add(object)
	}
	s.model.keepScalers(s.namespace, seen)
	s.model.scalersSeen(s.namespace, true)
	return nil
}

func (s *scalerStore) Resync() error { return nil }

func (m *model) putScaler(of workload, name string, state objectState) {
	m.dropScaler(objectKey{of.namespace, name}, &of)
	m.mu.Lock()
	defer m.mu.Unlock()
	held := m.scalersOf[of]
	if held == nil {
		held = map[string]objectState{}
		m.scalersOf[of] = held
	}
	was, known := held[name]
	held[name] = state
	if !known || state.tells(was) {
		m.tellScaled(of)
	}
}

// dropScaler forgets an autoscaler, except for what it scales now.
func (m *model) dropScaler(key objectKey, now *workload) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for of, held := range m.scalersOf {
		if _, ok := held[key.name]; !ok || of.namespace != key.namespace || now != nil && of == *now {
			continue
		}
		delete(held, key.name)
		if len(held) == 0 {
			delete(m.scalersOf, of)
		}
		m.tellScaled(of)
	}
}

func (m *model) keepScalers(namespace string, seen map[objectKey]bool) {
	m.mu.Lock()
	var gone []objectKey
	for of, held := range m.scalersOf {
		for name := range held {
			key := objectKey{of.namespace, name}
			if (namespace == "" || namespace == of.namespace) && !seen[key] {
				gone = append(gone, key)
			}
		}
	}
	m.mu.Unlock()
	for _, key := range gone {
		m.dropScaler(key, nil)
	}
}

// scale says that the objects of a kind can be scaled, before its watch begins.
func (m *model) scale(at watchKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kinds[at]
	if k == nil || k.root || k.scales || at.name != "" {
		return
	}
	k.scales = true
	for key := range k.members {
		m.hands.scalers(key.namespace)
	}
}

// scalersAt tells whether the autoscalers of a namespace may be seen, and whether that is known yet.
func (m *model) scalersAt(namespace string) (seen, known bool) {
	if seen, known = m.scalersIn[""]; !known {
		seen, known = m.scalersIn[namespace]
	}
	return seen, known
}

// awaitsScalers tells whether a release has workloads of which it is not known yet whether they are scaled. It is
// told of when they are.
func (m *model) awaitsScalers(rel *release) bool {
	for _, one := range rel.members {
		if one.kind == nil || !one.kind.scales {
			continue
		}
		if _, known := m.scalersAt(one.key.namespace); !known {
			m.unscaled[rel.key] = struct{}{}
			return true
		}
	}
	return false
}

// scalersSeen says that every autoscaler that can be seen in a namespace, or everywhere, has been, or that none may
// be: what waited for it is told.
func (m *model) scalersSeen(namespace string, visible bool) {
	if !visible {
		m.keepScalers(namespace, nil) // nobody would notice them change
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if was, known := m.scalersIn[namespace]; known && !was && visible {
		m.tellScalable(namespace)
	}
	m.scalersIn[namespace] = visible
	delete(m.scalersFailed, namespace)
	for key := range m.unscaled {
		rel := m.releases[key]
		if rel != nil && m.awaitsScalers(rel) {
			continue
		}
		delete(m.unscaled, key)
		if rel != nil && rel.whole {
			m.tellWhole(rel)
		}
	}
}

// failScalers takes that autoscalers cannot be listed now; whoever says so tries again. After a while they count as
// such that may not be seen, until they are: no release has to wait for them.
func (m *model) failScalers(namespace string, now time.Time) {
	m.mu.Lock()
	since, failing := m.scalersFailed[namespace]
	_, known := m.scalersIn[namespace]
	if !failing || m.outOfReach(watchKey{namespace: namespace}) {
		// While nothing answers, that is said of the whole cluster.
		m.scalersFailed[namespace], since = now, now
	}
	m.mu.Unlock()
	if !known && now.Sub(since) >= kindPatience {
		m.scalersSeen(namespace, false)
	}
}

// scalable tells whether a namespace has objects that can be scaled.
func (m *model) scalable(namespace string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.kinds {
		if !k.scales {
			continue
		}
		for key := range k.members {
			if key.namespace == namespace {
				return true
			}
		}
	}
	return false
}

// tellScalable tells of the releases that have workloads in a namespace, or anywhere.
func (m *model) tellScalable(namespace string) {
	for _, rel := range m.releases {
		scales := slices.ContainsFunc(rel.members, func(one *member) bool {
			return one.kind != nil && one.kind.scales && (namespace == "" || namespace == one.key.namespace)
		})
		if scales && rel.whole {
			m.tellWhole(rel)
		}
	}
}

// scalersUnseen says that autoscalers may not be watched everywhere at once.
func (m *model) scalersUnseen() {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.scalersIn, "")
}

func (m *model) tellScaled(of workload) {
	for _, one := range m.membersAt(of) {
		if one.release.whole {
			m.tellWhole(one.release)
		}
	}
}

// scaling are the autoscalers of a release's workloads that are neither its own nor asked for.
func (m *model) scaling(rel *release) []*enginev1.ObjectState {
	if len(m.scalersOf) == 0 {
		return nil
	}
	mine := map[objectKey]bool{}
	for _, one := range rel.all() {
		if one.ref.Kind == scalerKind {
			mine[one.key] = true
		}
	}
	var out []*enginev1.ObjectState
	for _, one := range rel.members {
		if one.kind == nil {
			continue
		}
		held := m.scalersOf[one.workload()]
		for _, name := range slices.Sorted(maps.Keys(held)) {
			if mine[objectKey{one.key.namespace, name}] {
				continue
			}
			out = append(out, &enginev1.ObjectState{
				Ref:   inventory.NewRef(scalerVersion, scalerKind, one.key.namespace, name).Proto(),
				State: held[name].state, Message: held[name].message, Generation: held[name].generation,
			})
		}
	}
	return out
}
