package observe

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// scalable kinds are those for which it is worth looking for a HorizontalPodAutoscaler.
var scalable = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}:  true,
	{Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "ReplicaSet"}:  true,
	{Kind: "ReplicationController"}:      true,
}

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

// scalers looks at every HorizontalPodAutoscaler of the cluster, or of the namespaces where that is all that is
// allowed. They are few, so the watches stay.
func (o *observer) scalers(namespace string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.scaled[namespace] = true
	switch {
	case !o.scalerEyes[""]:
		o.watchScalers("")
	case o.scalersNarrow && !o.scalerEyes[namespace]:
		o.watchScalers(namespace)
	}
}

func (o *observer) watchScalers(namespace string) {
	o.scalerEyes[namespace] = true
	o.run(func(ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		forbidden := false
		raw.Reflect(ctx, &raw.ListWatch{
			Client: o.at.REST(),
			Target: raw.Target{Group: "autoscaling", Version: "v2", Plural: "horizontalpodautoscalers", Namespace: namespace},
			Decode: decodeScaler,
			Failed: func(err error) {
				if forbidden = isForbidden(err); forbidden || isMissing(err) {
					cancel()
				}
			},
		}, &scalerStore{o.model, namespace})
		if namespace != "" || o.ctx.Err() != nil {
			return
		}
		if forbidden {
			o.narrowScalers()
		}
		o.model.scalersSeen()
	})
}

func (o *observer) narrowScalers() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.scalersNarrow = true
	for namespace := range o.scaled {
		o.watchScalers(namespace)
	}
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
	s.model.scalersSeen()
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

// awaitScalers says that a release has workloads of which it is not known yet whether they are scaled.
func (m *model) awaitScalers(rel *release) {
	rel.scaled = true
	if m.unscaled == nil && !m.scalersKnown {
		m.unscaled = map[releaseKey]struct{}{}
	}
}

// scalersSeen says that every autoscaler that can be seen has been: what waited for it is told.
func (m *model) scalersSeen() {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := m.unscaled
	m.unscaled, m.scalersKnown = nil, true
	for key := range held {
		if rel := m.releases[key]; rel != nil && rel.whole {
			m.tellWhole(rel)
		}
	}
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
