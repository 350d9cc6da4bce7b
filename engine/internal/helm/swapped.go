package helm

import (
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/pilothouse-dev/pilothouse/engine/internal/drift"
)

// swaps finds what somebody put in the place of elements of an object that was refused. What `leaves` says stays:
// the object's own element is taken out instead.
func (a *run) swaps(info *resource.Info, leaves func(live *unstructured.Unstructured, pointer string) (bool, error)) (
	live *unstructured.Unstructured, found []drift.Swap, left int, err error,
) {
	live, err = a.live(info)
	if apierrors.IsNotFound(err) {
		return nil, nil, 0, nil
	}
	object, ok := info.Object.(*unstructured.Unstructured)
	if err != nil || !ok {
		return nil, nil, 0, err
	}
	for _, swap := range drift.Swaps(object, live) {
		stays, err := leaves(live, swap.Path.Pointer())
		if err != nil {
			return nil, nil, 0, err
		}
		if stays {
			swap.Drop()
			left++
		} else {
			found = append(found, swap)
		}
	}
	return live, found, left, nil
}

// takingBack applies an object so that elements which were put in the place of its own go: they are made to look
// applied by the release, and what it does not apply again is removed by the API server in the same write.
func (k *kubeClient) takingBack(info *resource.Info, live *unstructured.Unstructured, swaps []drift.Swap, apply func() error) error {
	before := live.GetManagedFields()
	claimed, err := k.writeManagers(info, drift.Claim(live, swaps), live.GetResourceVersion())
	if err != nil {
		return err
	}
	err = apply()
	if err != nil && !apierrors.IsNotFound(err) {
		// The object is as it was; only whose their elements are is not. Who wrote meanwhile has said so anew.
		_, _ = k.writeManagers(info, before, claimed.GetResourceVersion())
	}
	return err
}

func (k *kubeClient) writeManagers(info *resource.Info, entries []metav1.ManagedFieldsEntry, version string) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": version}, // a conflict if somebody wrote meanwhile
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	return k.objects(info).Patch(ctx, info.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
}

// applySwapped applies an object that was refused once more, if somebody replaced elements of it.
func (k *kubeClient) applySwapped(info *resource.Info, refused error) error {
	live, found, left, err := k.run.swaps(info, k.leaves)
	if err != nil {
		return err
	}
	taken := len(found) > 0
	if !taken && left == 0 || taken && (!k.around.GetForceRest() || drift.Claim(live, found) == nil) {
		return refused
	}
	apply := func() error {
		once := *info
		once.Object = info.Object.DeepCopyObject()
		return k.applyOne(&once, k.around.GetForceRest())
	}
	if !taken {
		return apply()
	}
	return k.takingBack(info, live, found, apply)
}

// compareSwapped rehearses the apply of an object that was refused, without the elements that somebody replaced,
// and gives those too.
func (a *run) compareSwapped(info *resource.Info, refused error) (*unstructured.Unstructured, []drift.Swap, error) {
	rest := *info
	rest.Object = info.Object.DeepCopyObject()
	_, found, _, err := a.swaps(&rest, func(*unstructured.Unstructured, string) (bool, error) { return false, nil })
	if err != nil {
		return nil, nil, err
	}
	if len(found) == 0 {
		return nil, nil, refused
	}
	for _, swap := range found {
		swap.DropMissing()
	}
	applied, err := a.apply(&rest, true)
	return applied, found, err
}

// repairSwapped applies an object that was refused once more, if somebody replaced elements of it.
func (a *run) repairSwapped(info *resource.Info, refused error) (*unstructured.Unstructured, error) {
	live, found, _, err := a.swaps(info, func(*unstructured.Unstructured, string) (bool, error) { return false, nil })
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || drift.Claim(live, found) == nil {
		return nil, refused
	}
	var applied *unstructured.Unstructured
	err = a.kube.takingBack(info, live, found, func() error {
		var err error
		applied, err = a.apply(info, true)
		return err
	})
	return applied, err
}

// leaveSwapped takes the elements out of an object whose replacements are to stay, and gives the other places.
func leaveSwapped(object, live *unstructured.Unstructured, leave []string) []string {
	rest := slices.Clone(leave)
	for _, swap := range drift.Swaps(object, live) {
		if pointer := swap.Path.Pointer(); slices.Contains(leave, pointer) {
			swap.Drop()
			rest = slices.DeleteFunc(rest, func(one string) bool { return one == pointer })
		}
	}
	return rest
}

// rehearseSwapped tells what would be refused if replaced elements were taken back: first of them, then of the rest.
func (a *run) rehearseSwapped(info *resource.Info, refused error) error {
	live, found, left, err := a.swaps(info, a.kube.leaves)
	if err != nil {
		return err
	}
	force := a.kube.around.GetForceRest()
	if len(found)+left == 0 || len(found) > 0 && !force {
		return refused
	}
	if len(found) > 0 {
		if err := a.rehearseRestored(info, drift.Restored(live, found)); err != nil {
			return err
		}
	}
	for _, swap := range found {
		swap.DropMissing()
	}
	return a.rehearseApply(info, force)
}

// rehearseRestored needs no right but that to patch, which an apply needs too.
func (a *run) rehearseRestored(info *resource.Info, restored *unstructured.Unstructured) error {
	restored.SetManagedFields(nil)
	data, err := json.Marshal(restored)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	_, err = a.kube.objects(info).Patch(ctx, info.Name, types.MergePatchType, data, metav1.PatchOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager,
	})
	return err
}
