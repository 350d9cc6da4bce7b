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
	// ownerDepth is how far a pod's owners are followed: a Job's pod, a Deployment's by its ReplicaSet.
	ownerDepth = 3
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
	o.podEyes[namespace] = cancel
	o.run(func(context.Context) { o.watchPods(ctx, cancel, namespace) })
}

func (o *observer) closePods(namespace string) {
	if o.model.troubledIn(namespace) {
		return
	}
	o.mu.Lock()
	cancel := o.podEyes[namespace]
	delete(o.podEyes, namespace)
	o.mu.Unlock()
	if cancel != nil {
		cancel()
		o.model.forgetPods(namespace)
	}
}

// watchPods looks at a namespace's pods, and keeps only why some of them fail.
func (o *observer) watchPods(ctx context.Context, cancel context.CancelFunc, namespace string) {
	store := &podStore{
		observer: o, ctx: ctx, namespace: namespace,
		failing: map[string]workload{}, owners: map[string]owner{},
	}
	raw.Reflect(ctx, &raw.ListWatch{
		Client: o.at.REST(),
		Target: raw.Target{Version: "v1", Plural: "pods", Namespace: namespace},
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

// podStore passes the pods that fail to the model, under the workload they belong to.
type podStore struct {
	observer  *observer
	ctx       context.Context //nolint:containedctx // of the watch, for the questions it leads to
	namespace string
	failing   map[string]workload // by pod
	owners    map[string]owner    // of owners, by uid
}

func (s *podStore) Add(object any) error {
	pod := object.(*podObject)
	if pod.reason == "" {
		s.clear(pod.Name)
		return nil
	}
	of, known := s.failing[pod.Name]
	if !known {
		of = s.workload(pod.owner)
		s.failing[pod.Name] = of
	}
	s.observer.model.putPod(of, pod.Name, pod.reason)
	return nil
}

func (s *podStore) Update(object any) error { return s.Add(object) }

func (s *podStore) Delete(object any) error {
	s.clear(object.(*podObject).Name)
	return nil
}

func (s *podStore) Replace(objects []any, _ string) error {
	seen := make(map[string]bool, len(objects))
	for _, object := range objects {
		seen[object.(*podObject).Name] = true
		_ = s.Add(object)
	}
	for name := range s.failing {
		if !seen[name] {
			s.clear(name)
		}
	}
	return nil
}

func (s *podStore) Resync() error { return nil }

func (s *podStore) clear(pod string) {
	if of, ok := s.failing[pod]; ok {
		delete(s.failing, pod)
		s.observer.model.putPod(of, pod, "")
	}
}

// workload follows owners up to one that a release has, or to the last.
func (s *podStore) workload(of owner) workload {
	for range ownerDepth {
		found := workload{of.gvk().GroupKind(), objectKey{s.namespace, of.Name}}
		if s.observer.model.has(found) {
			return found
		}
		above, ok := s.owners[of.UID]
		if !ok {
			above = s.observer.ownerOf(s.ctx, s.namespace, of)
			s.owners[of.UID] = above
		}
		if above.Name == "" {
			return found
		}
		of = above
	}
	return workload{of.gvk().GroupKind(), objectKey{s.namespace, of.Name}}
}

// ownerOf asks for an owner's own controller; whoever cannot be asked has none.
func (o *observer) ownerOf(ctx context.Context, namespace string, of owner) owner {
	mapping, err := o.at.Mapper().RESTMapping(of.gvk().GroupKind(), of.gvk().Version)
	if err != nil {
		return owner{}
	}
	target := targetOf(mapping, namespace)
	target.MetadataOnly = true
	data, err := raw.Get(ctx, o.at.REST(), target, of.Name)
	if err != nil {
		return owner{}
	}
	var object struct {
		Metadata struct {
			UID             string  `json:"uid"`
			OwnerReferences []owner `json:"ownerReferences"`
		} `json:"metadata"`
	}
	if json.Unmarshal(data, &object) != nil || object.Metadata.UID != of.UID {
		return owner{}
	}
	return controllerOf(object.Metadata.OwnerReferences)
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
