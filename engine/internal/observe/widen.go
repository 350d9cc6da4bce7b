package observe

import (
	"context"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// widenRest is how long a refusal holds: no more than one question in that time, however many actions there are.
	widenRest    = 10 * time.Second
	widenTimeout = 10 * time.Second
	// renewRest is how long eyes that were opened for a resource, and found it closed, are believed: a proxy may
	// refuse what the API server says is allowed.
	renewRest = 30 * time.Minute
)

var scalersResource = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

// widen asks whether what had to be looked at by namespace may be watched everywhere by now. Nothing tells when
// rights are granted, and an idle cluster must cost no request: so it is asked when requests are being made
// anyway, after an action, after a time out of reach, and between polls. If so, these eyes are closed, and
// whoever looked through them opens new ones.
func (o *observer) widen() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() != nil || time.Since(o.askedWider) < widenRest {
		return
	}
	o.askedWider = time.Now()
	scalers := o.scalersNarrow
	o.run(func(ctx context.Context) { o.askWider(ctx, scalers) })
}

func (o *observer) askWider(ctx context.Context, scalers bool) {
	ctx, cancel := context.WithTimeout(ctx, widenTimeout)
	defer cancel()
	for _, resource := range o.narrow(scalers) {
		if o.mayRenew(resource) && o.allowed(ctx, resource, "watch") && o.allowed(ctx, resource, "list") {
			o.renew(resource)
			return
		}
	}
}

// narrow gives what is looked at by namespace only, records first.
func (o *observer) narrow(scalers bool) []schema.GroupVersionResource {
	records, kinds := o.model.refused()
	var out []schema.GroupVersionResource
	if records {
		out = append(out, schema.GroupVersionResource{Version: "v1", Resource: "secrets"})
	}
	if scalers {
		out = append(out, scalersResource)
	}
	for _, kind := range kinds {
		if mapping, err := o.at.Mapper().RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			out = append(out, mapping.Resource)
		}
	}
	return out
}

// allowed asks the API server, which answers everybody about themselves.
func (o *observer) allowed(ctx context.Context, resource schema.GroupVersionResource, verb string) bool {
	review, err := o.at.Clientset().AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Verb: verb,
		}},
	}, metav1.CreateOptions{})
	return err == nil && review.Status.Allowed
}

// refused tells what may not be watched in all namespaces at once: the records, and kinds.
func (m *model) refused() (bool, []schema.GroupVersionKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kinds := make([]schema.GroupVersionKind, 0, len(m.narrowed))
	for kind := range m.narrowed {
		kinds = append(kinds, kind)
	}
	return m.spaces != nil, kinds
}

// finish ends every subscription; their readers may open others.
func (m *model) finish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range m.subscriptions {
		s.finished = true
		s.wake()
	}
}
