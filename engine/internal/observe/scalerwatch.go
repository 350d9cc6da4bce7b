package observe

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// scalerEye is the watch of a namespace's autoscalers, or of all.
type scalerEye struct {
	again        chan struct{} // says that it is time to try again where they were refused
	askedRefused time.Time
}

// scales asks discovery, which is in memory by now, whether a resource can be scaled; where it does not say, looking
// for autoscalers costs one watch.
func (o *observer) scales(resource schema.GroupVersionResource) bool {
	discovery, err := o.at.Getter("").ToDiscoveryClient()
	if err != nil {
		return true
	}
	list, err := discovery.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	return err != nil || slices.ContainsFunc(list.APIResources, func(one metav1.APIResource) bool {
		return one.Name == resource.Resource+"/scale"
	})
}

// scalers looks at every HorizontalPodAutoscaler of the cluster, or of the namespaces where that is all that is
// allowed. They are few, so the watches stay.
func (o *observer) scalers(namespace string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.scaled[namespace] = true
	switch {
	case o.scalerEyes[""] == nil:
		o.watchScalers("")
	case o.scalersNarrow && o.scalerEyes[namespace] == nil:
		o.watchScalers(namespace)
	}
}

func (o *observer) watchScalers(namespace string) {
	again := make(chan struct{}, 1)
	o.scalerEyes[namespace] = &scalerEye{again: again}
	o.run(func(ctx context.Context) {
		for o.reflectScalers(ctx, namespace) && namespace != "" {
			o.model.scalersSeen(namespace, false)
			select {
			case <-ctx.Done():
			case <-again:
			case <-time.After(pollsPerTry * pollObjects): // as rarely as for a kind that may not be watched
				o.renewScalers(namespace)
				return
			}
		}
	})
}

// renewScalers begins anew in a namespace, if anything is there still that could be scaled.
func (o *observer) renewScalers(namespace string) {
	o.mu.Lock()
	delete(o.scaled, namespace)
	delete(o.scalerEyes, namespace)
	o.mu.Unlock()
	// Whoever joins from here on begins by himself.
	if o.model.scalable(namespace) {
		o.scalers(namespace)
	}
}

// retryScalers is told that requests are being made in a namespace anyway: where autoscalers were refused, rights may
// have been granted since.
func (o *observer) retryScalers(namespace string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	eye := o.scalerEyes[namespace]
	if eye == nil || time.Since(eye.askedRefused) < widenRest {
		return
	}
	select {
	case eye.again <- struct{}{}:
		eye.askedRefused = time.Now()
	default:
	}
}

// reflectScalers watches until the context ends, or until it is told that it never will; it tells whether rights are
// all that is missing.
func (o *observer) reflectScalers(within context.Context, namespace string) bool {
	ctx, cancel := context.WithCancel(within)
	defer cancel()
	forbidden := false
	raw.Reflect(ctx, &raw.ListWatch{
		Client: o.at.REST(),
		Target: raw.Target{Group: "autoscaling", Version: "v2", Plural: "horizontalpodautoscalers", Namespace: namespace},
		Decode: decodeScaler,
		Failed: func(err error) {
			if forbidden = isForbidden(err); forbidden || isMissing(err) {
				cancel()
				return
			}
			o.model.failScalers(namespace, time.Now())
		},
	}, &scalerStore{o.model, namespace})
	switch {
	case within.Err() != nil:
		return false
	case !forbidden: // a cluster without autoscalers
		o.model.scalersSeen(namespace, true)
	case namespace == "":
		o.narrowScalers()
	}
	return forbidden
}

// narrowScalers looks by namespace: only when one has been, is it known what is scaled there.
func (o *observer) narrowScalers() {
	o.model.scalersUnseen()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.scalersNarrow = true
	for namespace := range o.scaled {
		o.watchScalers(namespace)
	}
}
