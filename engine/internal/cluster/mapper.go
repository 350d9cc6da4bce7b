package cluster

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
)

// mapper maps kinds and resources from cached discovery. A miss refreshes discovery (at most every few
// seconds) and asks once more; client-go's deferred mapper would invalidate on every miss.
type mapper struct {
	discovery *cachedDiscovery

	mu         sync.Mutex
	delegate   meta.RESTMapper
	generation int64
}

var _ meta.ResettableRESTMapper = (*mapper)(nil)

// get gives the mapper for what discovery now holds, building it if that has changed.
func (m *mapper) get() (meta.RESTMapper, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	generation := m.discovery.current()
	if m.delegate != nil && m.generation == generation {
		return m.delegate, nil
	}
	groups, err := restmapper.GetAPIGroupResources(m.discovery)
	if err != nil {
		return nil, err
	}
	m.delegate, m.generation = restmapper.NewDiscoveryRESTMapper(groups), generation
	return m.delegate, nil
}

// ask runs one question, and once more after a refresh when the answer was "no such kind".
func ask[T any](m *mapper, question func(meta.RESTMapper) (T, error)) (T, error) {
	var none T
	delegate, err := m.get()
	if err != nil {
		return none, err
	}
	answer, err := question(delegate)
	if !meta.IsNoMatchError(err) || !m.discovery.refresh() {
		return answer, err
	}
	if delegate, err = m.get(); err != nil {
		return none, err
	}
	return question(delegate)
}

// Reset is heard as discovery hears invalidation: once in a while.
func (m *mapper) Reset() { m.discovery.Invalidate() }

func (m *mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return ask(m, func(d meta.RESTMapper) (schema.GroupVersionKind, error) { return d.KindFor(resource) })
}

func (m *mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return ask(m, func(d meta.RESTMapper) ([]schema.GroupVersionKind, error) { return d.KindsFor(resource) })
}

func (m *mapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return ask(m, func(d meta.RESTMapper) (schema.GroupVersionResource, error) { return d.ResourceFor(input) })
}

func (m *mapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return ask(m, func(d meta.RESTMapper) ([]schema.GroupVersionResource, error) { return d.ResourcesFor(input) })
}

func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return ask(m, func(d meta.RESTMapper) (*meta.RESTMapping, error) { return d.RESTMapping(gk, versions...) })
}

func (m *mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return ask(m, func(d meta.RESTMapper) ([]*meta.RESTMapping, error) { return d.RESTMappings(gk, versions...) })
}

func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	return ask(m, func(d meta.RESTMapper) (string, error) { return d.ResourceSingularizer(resource) })
}
