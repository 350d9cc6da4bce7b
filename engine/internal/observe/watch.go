package observe

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// objectSelector narrows the watches; membership is the inventory's to say.
const objectSelector = "app.kubernetes.io/managed-by=Helm"

// watchKind watches one kind until the context ends, or says that it cannot.
func (o *observer) watchKind(ctx context.Context, gvk schema.GroupVersionKind) {
	mapping, ok := o.mapping(ctx, gvk)
	if !ok {
		return
	}
	o.model.scope(gvk, mapping.Scope.Name() == meta.RESTScopeNameRoot)
	if !o.watchable(mapping.Resource) {
		o.becomeBlind(gvk, false)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	target := targetOf(mapping, "")
	decode := decodeState
	if stateless[gvk.GroupKind()] {
		target.MetadataOnly, decode = true, decodeMetadata
	}
	raw.Reflect(ctx, &raw.ListWatch{
		Client: o.at.REST(), Target: target, LabelSelector: objectSelector, Decode: decode,
		Failed: func(err error) {
			switch e := fault.FromAPI(err); e.Kind {
			case enginev1.Fault_FORBIDDEN, enginev1.Fault_NOT_FOUND:
				// Asking again would be polling. Discovery knew the kind, so it is wrong now if that is gone.
				vanished := e.Kind == enginev1.Fault_NOT_FOUND
				if vanished {
					o.at.InvalidateDiscovery()
				}
				o.becomeBlind(gvk, vanished)
				cancel()
			default:
				o.model.fail(gvk.String(), e.Proto())
			}
		},
		Worked: func() { o.model.work(gvk.String()) },
	}, &stateStore{o.model, gvk})
	o.model.work(gvk.String())
}

// mapping finds a kind's resource; it waits while the API server cannot be asked.
func (o *observer) mapping(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, bool) {
	for delay := 200 * time.Millisecond; ; delay = min(2*delay, 5*time.Second) {
		mapping, err := o.at.Mapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		switch {
		case err == nil:
			o.model.work(gvk.String())
			return mapping, true
		case meta.IsNoMatchError(err):
			o.becomeBlind(gvk, true)
			return nil, false
		}
		o.model.fail(gvk.String(), fault.FromAPI(err).Proto())
		select {
		case <-ctx.Done():
			return nil, false
		case <-time.After(delay):
		}
	}
}

// watchable asks discovery whether a resource has the verbs; where discovery does not say, trying does.
func (o *observer) watchable(resource schema.GroupVersionResource) bool {
	discovery, err := o.at.Getter("").ToDiscoveryClient()
	if err != nil {
		return true
	}
	list, err := discovery.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil {
		return true
	}
	for _, one := range list.APIResources {
		if one.Name == resource.Resource {
			return slices.Contains(one.Verbs, "list") && slices.Contains(one.Verbs, "watch")
		}
	}
	return true
}

func (o *observer) becomeBlind(gvk schema.GroupVersionKind, unknown bool) {
	o.mu.Lock()
	o.blindAt[gvk] = time.Now()
	o.mu.Unlock()
	if unknown {
		o.watchCRDs()
	}
	o.model.blind(gvk, unknown)
}

// read gets one object's state. Only a fault that asking again may cure is an error.
func (o *observer) read(ctx context.Context, gvk schema.GroupVersionKind, key objectKey) (objectState, error) {
	mapping, err := o.at.Mapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return unknown(fmt.Sprintf("the API server knows no kind %s in %s", gvk.Kind, gvk.GroupVersion())), nil
	}
	if err != nil {
		return objectState{}, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		key.namespace = ""
	}
	target := targetOf(mapping, key.namespace)
	target.MetadataOnly = stateless[gvk.GroupKind()]
	data, err := raw.Get(ctx, o.at.REST(), target, key.name)
	if err == nil {
		data, err = raw.Strip(data)
	}
	if err != nil {
		switch e := fault.FromAPI(err); e.Kind {
		case enginev1.Fault_NOT_FOUND, enginev1.Fault_NAMESPACE_MISSING:
			return notFound, nil
		case enginev1.Fault_UNREACHABLE:
			return objectState{}, e
		default:
			return unknown(e.Message), nil
		}
	}
	calculate := compute
	if target.MetadataOnly {
		calculate = computeMetadata
	}
	state, err := calculate(data)
	if err != nil {
		return unknown(err.Error()), nil
	}
	return state, nil
}

func targetOf(mapping *meta.RESTMapping, namespace string) raw.Target {
	return raw.Target{
		Group: mapping.Resource.Group, Version: mapping.Resource.Version, Plural: mapping.Resource.Resource,
		Namespace: namespace,
	}
}
