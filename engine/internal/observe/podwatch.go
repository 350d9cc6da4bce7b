package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

const (
	// podPatience is how long a workload may take before its pods are asked why: an ordinary rollout costs nothing.
	podPatience = 2 * time.Second
	// podLinger keeps the watch of a namespace whose workloads have become current.
	podLinger = 10 * time.Second
)

// podObject is all that is made of a pod.
type podObject struct {
	raw.Head
	owner  owner
	reason string
}

type owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller bool   `json:"controller"`
}

func (o owner) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
}

func controllerOf(owners []owner) owner {
	for _, one := range owners {
		if one.Controller {
			return one
		}
	}
	return owner{}
}

// podEye is the watch of a namespace's pods.
type podEye struct {
	close        context.CancelFunc
	store        *podStore
	askedRefused time.Time
}

func (o *observer) pods(namespace string, on bool) {
	if on {
		o.after(podPatience, func() { o.openPods(namespace) })
		return
	}
	o.after(podLinger, func() { o.closePods(namespace) })
}

func (o *observer) openPods(namespace string) {
	if !o.model.troubledIn(namespace) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.podEyes[namespace] != nil {
		return
	}
	ctx, cancel := context.WithCancel(o.ctx)
	store := newPodStore(ctx, o, namespace)
	o.podEyes[namespace] = &podEye{close: cancel, store: store}
	o.run(func(context.Context) { o.watchPods(ctx, cancel, store) })
}

func (o *observer) closePods(namespace string) {
	if o.model.troubledIn(namespace) {
		return
	}
	o.mu.Lock()
	eye := o.podEyes[namespace]
	delete(o.podEyes, namespace)
	o.mu.Unlock()
	if eye != nil {
		eye.close()
		eye.store.forget()
	}
}

// retryPods is told that requests are being made in a namespace anyway: where a pod's owner was refused, rights may
// have been granted since.
func (o *observer) retryPods(namespace string) {
	o.mu.Lock()
	eye := o.podEyes[namespace]
	rested := eye != nil && time.Since(eye.askedRefused) >= widenRest
	if rested {
		eye.askedRefused = time.Now()
	}
	o.mu.Unlock()
	if rested {
		eye.store.askRefused()
	}
}

// watchPods looks at a namespace's pods, and keeps only why some of them fail.
func (o *observer) watchPods(ctx context.Context, cancel context.CancelFunc, store *podStore) {
	raw.Reflect(ctx, &raw.ListWatch{
		Client: o.at.REST(),
		Target: raw.Target{Version: "v1", Plural: "pods", Namespace: store.namespace},
		Decode: decodePod,
		// Without the right the workload's own words must do. Other failures are told by other watches.
		Failed: func(err error) {
			if isForbidden(err) {
				cancel()
			}
		},
	}, store)
}

func decodePod(head raw.Head, data []byte) (runtime.Object, error) {
	var pod pod
	if err := json.Unmarshal(data, &pod); err != nil {
		return nil, err
	}
	out := &podObject{Head: head, owner: controllerOf(pod.Metadata.OwnerReferences)}
	if out.owner.Name != "" {
		out.reason = pod.trouble()
	}
	return out, nil
}

// has tells whether some release has a workload.
func (m *model) has(of workload) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.membersAt(of)) > 0
}

// podMessage says why a pod that is a member itself does not run.
func podMessage(data []byte, otherwise string) string {
	var one pod
	if json.Unmarshal(data, &one) == nil {
		if why := one.trouble(); why != "" {
			return clip(why)
		}
	}
	return otherwise
}

func said(reason, message string) string {
	if message == "" {
		return reason
	}
	return fmt.Sprintf("%s: %s", reason, message)
}
