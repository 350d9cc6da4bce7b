package helm

import (
	"fmt"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
)

// GetWaiter implements kube.Interface.
func (k *kubeClient) GetWaiter(strategy kube.WaitStrategy) (kube.Waiter, error) {
	return &waiter{kube: k, objects: strategy != kube.HookOnlyStrategy}, nil
}

// GetWaiterWithOptions implements kube.InterfaceWaitOptions. The options carry contexts and readers; ours are
// the action's own.
func (k *kubeClient) GetWaiterWithOptions(strategy kube.WaitStrategy, _ ...kube.WaitOption) (kube.Waiter, error) {
	return k.GetWaiter(strategy)
}

// waiter waits on the cluster's shared clients. Making it costs nothing, and so does a wait for nothing.
type waiter struct {
	kube    *kubeClient
	objects bool // not hooks only
}

func (w *waiter) Wait(list kube.ResourceList, timeout time.Duration) error {
	if !w.objects {
		return nil
	}
	return w.kube.awaitAll(list, timeout, "ready", readiness)
}

func (w *waiter) WaitWithJobs(list kube.ResourceList, timeout time.Duration) error {
	if !w.objects {
		return nil
	}
	return w.kube.awaitAll(list, timeout, "ready", readinessWithJobs)
}

func (w *waiter) WatchUntilReady(list kube.ResourceList, timeout time.Duration) error {
	logs := newHookLogs(w.kube, list)
	err := w.kube.awaitAll(list, timeout, "hook", func(object *unstructured.Unstructured) (verdict, string) {
		if doomed(object) {
			logs.keep(object.GetKind(), object.GetName()) // its pods are deleted before it counts as failed
		}
		return completion(object)
	})
	if err != nil && w.kube.run.waits.Err() == nil {
		logs.keepAll() // before its delete policy removes it
	}
	w.kube.run.logs = append(w.kube.run.logs, logs.kept()...)
	return err
}

// WaitForDelete follows deletions to their end. Helm's own does nothing with hooks only, and otherwise may return
// at the first object that is gone.
func (w *waiter) WaitForDelete(list kube.ResourceList, timeout time.Duration) error {
	err := w.kube.awaitGone(list, timeout)
	if w.kube.keepRecordUntilGone {
		if err == nil {
			err = w.kube.skipped(list)
		}
		w.kube.stuck = err
	}
	return err
}

// skipped finds objects Helm left out of a deletion because it could not ask about them, and would forget.
// Those that are gone, and those that belong to someone else, are rightly left out.
func (k *kubeClient) skipped(deleted kube.ResourceList) error {
	for _, info := range k.built.Difference(deleted) {
		live, err := resource.NewHelper(info.Client, info.Mapping).Get(info.Namespace, info.Name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot tell whether %s %s is gone: %w", info.Mapping.GroupVersionKind.Kind, info.Name, err)
		}
		if k.owned(live) {
			return fmt.Errorf("%s %s could not be deleted: try again", info.Mapping.GroupVersionKind.Kind, info.Name)
		}
	}
	return nil
}

// owned is Helm's rule for what belongs to a release.
func (k *kubeClient) owned(object any) bool {
	live, ok := object.(metav1.Object)
	return ok && live.GetLabels()["app.kubernetes.io/managed-by"] == "Helm" && k.run.marked(live)
}

// deleteObject deletes one object and tells whether it is still there: the API server answers with a Status when
// it is gone, and with the object when finalizers or a grace period hold it.
func deleteObject(info *resource.Info, policy metav1.DeletionPropagation) (types.UID, bool, error) {
	answer, err := resource.NewHelper(info.Client, info.Mapping).
		DeleteWithOptions(info.Namespace, info.Name, &metav1.DeleteOptions{PropagationPolicy: &policy})
	if apierrors.IsNotFound(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("cannot delete %s %s: %w", info.Mapping.GroupVersionKind.Kind, info.Name, err)
	}
	if _, ok := answer.(*metav1.Status); ok {
		return "", false, nil
	}
	left, ok := answer.(metav1.Object)
	if !ok || answer.GetObjectKind().GroupVersionKind().Kind == "Status" {
		return "", false, nil
	}
	return left.GetUID(), left.GetDeletionTimestamp() != nil, nil
}
