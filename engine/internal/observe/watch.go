package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

const (
	managedBy = "app.kubernetes.io/managed-by"
	helm      = "Helm"
	// objectSelector narrows the watches; membership is the inventory's to say.
	objectSelector = managedBy + "=" + helm
	// pollObjects is how often objects are read that may not be watched.
	pollObjects = 30 * time.Second
	// retryMapping is how often, at most, the API server is asked again what it serves; retryGroup is how often it
	// is while it serves everything but one group: then each time costs the whole of discovery.
	retryMapping = 5 * time.Second
	retryGroup   = 30 * time.Second
)

// watchKind watches one kind until the context ends, or says that it cannot.
func (o *observer) watchKind(ctx context.Context, at watchKey) {
	mapping, ok := o.mapping(ctx, at)
	if !ok {
		return
	}
	root := mapping.Scope.Name() == meta.RESTScopeNameRoot
	o.model.scope(at, root)
	if o.scales(mapping.Resource) {
		o.model.scale(at)
	}
	if !o.watchable(mapping.Resource) {
		o.poll(ctx, at)
		return
	}
	switch o.reflect(ctx, at, mapping) {
	case enginev1.Fault_NOT_FOUND:
		// Discovery knew the kind, so it is wrong now.
		o.at.InvalidateDiscovery()
		o.becomeBlind(at, true)
	case enginev1.Fault_FORBIDDEN:
		if at.namespace == "" && at.name == "" && !root {
			o.model.narrow(at)
			return
		}
		o.poll(ctx, at)
	}
}

// reflect watches until the context ends, or until it is told that it never will: asking again would be polling.
func (o *observer) reflect(ctx context.Context, at watchKey, mapping *meta.RESTMapping) enginev1.Fault_Kind {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	list := o.objectList(at, mapping)
	refused := enginev1.Fault_UNKNOWN
	list.Failed = func(err error) {
		switch e := fault.FromAPI(err); e.Kind {
		case enginev1.Fault_FORBIDDEN, enginev1.Fault_NOT_FOUND:
			refused = e.Kind
			cancel()
		default:
			o.failKind(at, e)
		}
	}
	list.Worked = func() {
		if o.model.workKind(at) {
			o.widen()
		}
	}
	raw.Reflect(ctx, list, &stateStore{o.model, at})
	return refused
}

// objectList is what a watch asks for: the objects with Helm's label, or the one of that name, or all of a crowd.
func (o *observer) objectList(at watchKey, mapping *meta.RESTMapping) *raw.ListWatch {
	list := &raw.ListWatch{Client: o.at.REST(), Target: targetOf(mapping, at.namespace), LabelSelector: objectSelector}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		list.Target.Namespace = ""
	}
	if at.own {
		list.LabelSelector = ""
	}
	if at.name != "" {
		list.LabelSelector = ""
		list.FieldSelector = fields.OneTermEqualSelector("metadata.name", at.name).String()
	}
	list.Target.MetadataOnly = stateless[at.GroupKind()]
	list.Managed = true
	list.Decode = func(head raw.Head, data []byte) (runtime.Object, error) {
		key := objectKey{head.Namespace, head.Name}
		if !o.model.cares(at, key) {
			head.Managed() // a list is kept until its end, and with them the bytes of everybody's objects
			return &stateObject{Head: head, ignored: true}, nil
		}
		view := o.view(at, key)
		view.metadata = list.Target.MetadataOnly
		state, err := view.compute(data)
		if err != nil {
			return nil, err
		}
		state.look(&head, data, list.Target.MetadataOnly)
		return &stateObject{Head: head, state: state}, nil
	}
	return list
}

func (o *observer) view(at watchKey, key objectKey) viewer {
	return viewer{by: o.model.judgeAt(at, key), foreign: at.name != "" && !at.own}
}

// poll reads the objects of a kind that cannot be watched, now and then, and tries to watch it more rarely.
func (o *observer) poll(ctx context.Context, at watchKey) {
	o.becomeBlind(at, false)
	for range pollsPerTry {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pollObjects):
		}
		o.model.lookAgain(at)
	}
	o.widen()
	o.model.again(at)
}

func (o *observer) failKind(at watchKey, why *fault.Error) {
	o.model.failKind(at, fmt.Sprintf("objects of kind %s cannot be listed: %s", at.Kind, why.Message), time.Now())
}

// mapping finds a kind's resource; it waits while the API server cannot be asked.
func (o *observer) mapping(ctx context.Context, at watchKey) (*meta.RESTMapping, bool) {
	for delay, most := 200*time.Millisecond, retryMapping; ; delay = min(2*delay, most) {
		mapping, err := o.at.Mapper().RESTMapping(at.GroupKind(), at.Version)
		if err == nil {
			return mapping, true
		}
		if meta.IsNoMatchError(err) {
			if err = o.undiscovered(at); err == nil {
				o.becomeBlind(at, true)
				return nil, false
			}
			most = retryGroup
		}
		o.failKind(at, fault.FromAPI(err))
		select {
		case <-ctx.Done():
			return nil, false
		case <-time.After(delay):
		}
	}
}

// undiscovered is why nothing can be said of a kind though its group is known: what serves the group is away, or
// has only just come back.
func (o *observer) undiscovered(at watchKey) error {
	discovery, err := o.at.Getter("").ToDiscoveryClient()
	if err != nil {
		return err
	}
	list, err := discovery.ServerResourcesForGroupVersion(at.GroupVersion().String())
	switch {
	case errors.Is(err, memory.ErrCacheNotFound):
		return nil
	case err != nil && isMissing(err):
		return nil
	case err != nil:
		return err
	}
	for _, one := range list.APIResources {
		if one.Kind == at.Kind && !strings.Contains(one.Name, "/") {
			o.at.InvalidateDiscovery()
			return fmt.Errorf("%s was not served a moment ago", at.GroupVersion())
		}
	}
	return nil
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

func (o *observer) becomeBlind(at watchKey, unknown bool) {
	o.mu.Lock()
	o.blindAt[at] = time.Now()
	o.mu.Unlock()
	if unknown {
		o.watchCRDs()
	}
	o.model.blind(at, unknown)
}

// read gets one object's state. Only a fault that asking again may cure is an error.
func (o *observer) read(ctx context.Context, at watchKey, key objectKey) (objectState, error) {
	mapping, err := o.at.Mapper().RESTMapping(at.GroupKind(), at.Version)
	if meta.IsNoMatchError(err) {
		return unknown(fmt.Sprintf("the API server knows no kind %s in %s", at.Kind, at.GroupVersion())), nil
	}
	if err != nil {
		return objectState{}, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		key.namespace = ""
	}
	target := targetOf(mapping, key.namespace)
	view := o.view(at, key)
	view.metadata = stateless[at.GroupKind()] && view.by == nil
	target.MetadataOnly = view.metadata
	data, err := raw.Get(ctx, o.at.REST(), target, key.name)
	head := raw.Head{}
	if err == nil {
		head, data, err = raw.Strip(data)
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
	state, err := view.compute(data)
	if err != nil {
		return unknown(err.Error()), nil
	}
	state.look(&head, data, stateless[at.GroupKind()])
	return state, nil
}

func targetOf(mapping *meta.RESTMapping, namespace string) raw.Target {
	return raw.Target{
		Group: mapping.Resource.Group, Version: mapping.Resource.Version, Plural: mapping.Resource.Resource,
		Namespace: namespace,
	}
}
