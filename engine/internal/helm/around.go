package helm

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	refused := k.refusedFor(target, err)
	if len(refused) == 0 {
		return result, err
	}
	for i, info := range target {
		info.Object = asked[i]
	}
	var remain []error
	for _, info := range refused {
		remain = append(remain, k.applyAround(info))
	}
	if err := errors.Join(remain...); err != nil {
		return result, err
	}
	return k.Client.Update(original, target, options...)
}

// refusedFor are the objects of which Helm says that others have fields, or that what others put into them does
// not go with it.
func (k *kubeClient) refusedFor(target kube.ResourceList, err error) kube.ResourceList {
	if err == nil {
		return nil
	}
	answers := branches(err)
	return target.Filter(func(info *resource.Info) bool {
		name := fmt.Sprintf("object %s/%s %s:", info.Namespace, info.Name, info.Mapping.GroupVersionKind)
		return slices.ContainsFunc(answers, func(answer error) bool {
			return strings.Contains(answer.Error(), "conflict occurred while applying "+name) ||
				apierrors.IsInvalid(answer) && strings.Contains(answer.Error(), "server-side apply failed for "+name)
		})
	})
}

// applyAround takes out of an object what is left to others, and applies the rest.
func (k *kubeClient) applyAround(info *resource.Info) error {
	if err := k.leaveOut(info); err != nil {
		return err
	}
	once := *info
	once.Object = info.Object.DeepCopyObject()
	err := k.applyOne(&once, k.around.GetForceRest())
	if apierrors.IsInvalid(err) {
		return k.applySwapped(info, err)
	}
	return err
}

// leaveOut takes out of an object what is left to others.
func (k *kubeClient) leaveOut(info *resource.Info) error {
	live, err := k.run.live(info)
	if apierrors.IsNotFound(err) {
		return nil // nobody has anything of it
	}
	if err != nil {
		return err
	}
	object, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("unknown object %T", info.Object)
	}
	stuck, err := drift.Leave(object, live, func(pointer string) (bool, error) { return k.leaves(live, pointer) })
	if err != nil || stuck == nil {
		return err
	}
	return fault.New(enginev1.Fault_CONFLICT, "%s of %s %s is %s's and to be left as it is, which the rest does not allow",
		stuck.Pointer, object.GetKind(), object.GetName(), stuck.Manager)
}

func (k *kubeClient) applyOne(info *resource.Info, force bool, options ...kube.ClientUpdateOption) error {
	before := *info
	before.Object = info.Object.DeepCopyObject()
	options = append(options, kube.ClientUpdateOptionServerSideApply(true, force))
	_, err := k.Client.Update(kube.ResourceList{&before}, kube.ResourceList{info}, options...)
	return err
}

// leaves tells whether a place in a live object is left to others.
func (k *kubeClient) leaves(live *unstructured.Unstructured, pointer string) (bool, error) {
	kind := live.GroupVersionKind()
	for _, one := range k.around.GetLeave() {
		if like(one.GetGroup(), kind.Group) && like(one.GetVersion(), kind.Version) && like(one.GetKind(), kind.Kind) &&
			like(one.GetNamespace(), live.GetNamespace()) && like(one.GetName(), live.GetName()) &&
			slices.ContainsFunc(one.GetPaths(), func(place string) bool { return isBelow(pointer, place) }) {
			return true, nil
		}
	}
	if pointer != replicas || !k.around.GetLeaveScaled() {
		return false, nil
	}
	return k.scaled(live)
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

// scaled tells whether an autoscaler has the replicas of a workload. Who may not see autoscalers goes by how the
// replicas were written; any other doubt is an error, since replicas that are taken are taken at once.
func (k *kubeClient) scaled(live *unstructured.Unstructured) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	found, err := k.run.cluster.Clientset().AutoscalingV2().HorizontalPodAutoscalers(live.GetNamespace()).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err): // a cluster without autoscalers
		return false, nil
	case apierrors.IsForbidden(err):
		return drift.Scaled(live), nil
	case err != nil:
		return false, fmt.Errorf("looking for autoscalers of object %s/%s %s: %w",
			live.GetNamespace(), live.GetName(), live.GroupVersionKind(), err)
	}
	for _, one := range found.Items {
		if of := one.Spec.ScaleTargetRef; of.Kind == live.GetKind() && of.Name == live.GetName() {
			return true, nil
		}
	}
	return false, nil
}

// goAround is how an action on objects that are applied on the server's side meets others' fields.
func (a *run) goAround(serverSide bool) *enginev1.Around {
	if !serverSide || a.request.GetForceConflicts() {
		return nil
	}
	return a.request.GetAround()
}
