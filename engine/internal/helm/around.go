package helm

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/pilothouse-dev/pilothouse/engine/internal/drift"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const replicas = "/spec/replicas"

// updateAround applies as Helm does. Objects that are refused because others have fields of them are applied once
// more without what the request leaves to others, and with force if it says so; then Helm goes through the list
// again, which is only what it would have done without the conflict.
func (k *kubeClient) updateAround(original, target kube.ResourceList, options ...kube.ClientUpdateOption) (*kube.Result, error) {
	if k.around == nil {
		return k.Client.Update(original, target, options...)
	}
	asked := make([]runtime.Object, len(target))
	for i, info := range target {
		asked[i] = info.Object.DeepCopyObject() // Helm writes the answers into what it is given
	}
	result, err := k.Client.Update(original, target, options...)
	conflicts := conflicting(target, err)
	if len(conflicts) == 0 {
		return result, err
	}
	for i, info := range target {
		info.Object = asked[i]
	}
	for _, info := range conflicts {
		if err := k.applyAround(info); err != nil {
			return result, err
		}
	}
	return k.Client.Update(original, target, options...)
}

// conflicting are the objects of which Helm says that others have fields.
func conflicting(target kube.ResourceList, err error) kube.ResourceList {
	if err == nil {
		return nil
	}
	text := err.Error()
	return target.Filter(func(info *resource.Info) bool {
		return strings.Contains(text, fmt.Sprintf("conflict occurred while applying object %s/%s %s:",
			info.Namespace, info.Name, info.Mapping.GroupVersionKind))
	})
}

// applyAround takes out of an object what is left to others, and applies the rest.
func (k *kubeClient) applyAround(info *resource.Info) error {
	live, err := k.run.live(info)
	if err != nil {
		return err
	}
	rehearsal := *info
	rehearsal.Object = info.Object.DeepCopyObject()
	if err := k.applyOne(&rehearsal, true, kube.ClientUpdateOptionDryRun(true)); err != nil {
		return err
	}
	object := info.Object.(*unstructured.Unstructured)
	for _, place := range drift.Paths(live.Object, rehearsal.Object.(*unstructured.Unstructured).Object) {
		pointer, owner := place.Pointer(), drift.Owner(live, place)
		if owner == "" || owner == fieldManager || !k.leaves(object, pointer) {
			continue
		}
		if !drift.Without(object.Object, live.Object, pointer) {
			return fault.New(enginev1.Fault_CONFLICT, "%s of %s %s is %s's and to be left as it is, which the rest does not allow",
				pointer, object.GetKind(), object.GetName(), owner)
		}
	}
	once := *info
	once.Object = object.DeepCopyObject()
	return k.applyOne(&once, k.around.GetForceRest())
}

func (k *kubeClient) applyOne(info *resource.Info, force bool, options ...kube.ClientUpdateOption) error {
	before := *info
	before.Object = info.Object.DeepCopyObject()
	options = append(options, kube.ClientUpdateOptionServerSideApply(true, force))
	_, err := k.Client.Update(kube.ResourceList{&before}, kube.ResourceList{info}, options...)
	return err
}

// leaves tells whether a place in an object is left to others.
func (k *kubeClient) leaves(object *unstructured.Unstructured, pointer string) bool {
	kind := object.GroupVersionKind()
	for _, one := range k.around.GetLeave() {
		if like(one.GetGroup(), kind.Group) && like(one.GetVersion(), kind.Version) && like(one.GetKind(), kind.Kind) &&
			like(one.GetNamespace(), object.GetNamespace()) && like(one.GetName(), object.GetName()) &&
			slices.ContainsFunc(one.GetPaths(), func(place string) bool { return isBelow(pointer, place) }) {
			return true
		}
	}
	return pointer == replicas && k.around.GetLeaveScaled() && k.scaled(object)
}

// like matches with the wildcards of file names; no pattern matches everything.
func like(pattern, value string) bool {
	matches, err := path.Match(pattern, value)
	return pattern == "" || err == nil && matches
}

// isBelow tells whether a pointer leads to a place or to something in it; a step of the place may be `*`.
func isBelow(pointer, place string) bool {
	if place == "" || place == "/" {
		return true
	}
	steps, wanted := strings.Split(pointer, "/"), strings.Split(strings.TrimRight(place, "/"), "/")
	if len(steps) < len(wanted) {
		return false
	}
	for i, step := range wanted {
		if step != "*" && step != steps[i] {
			return false
		}
	}
	return true
}

// scaled tells whether an autoscaler has the replicas of a workload, as far as may be known.
func (k *kubeClient) scaled(object *unstructured.Unstructured) bool {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	found, err := k.run.cluster.Clientset().AutoscalingV2().HorizontalPodAutoscalers(object.GetNamespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false
	}
	for _, one := range found.Items {
		if of := one.Spec.ScaleTargetRef; of.Kind == object.GetKind() && of.Name == object.GetName() {
			return true
		}
	}
	return false
}

// goAround is how an action on objects that are applied on the server's side meets others' fields.
func (a *run) goAround(serverSide bool) *enginev1.Around {
	if !serverSide || a.request.GetForceConflicts() {
		return nil
	}
	return a.request.GetAround()
}
