package drift

import (
	"bytes"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// theirs are the groups of objects that those programs reconcile.
var theirs = map[string]bool{
	"helm.toolkit.fluxcd.io": true, "helm.crossplane.io": true, "helm.m.crossplane.io": true, "helm.cattle.io": true,
}

// predecessors are the field managers of other programs that keep Helm releases. Helm's library writes in the name
// of the program it is part of, unless told otherwise: provider-helm's is called so in its image, and knows itself
// by the longer name; Flux's controller says its own.
var predecessors = map[string]bool{"provider-helm": true, "crossplane-helm-provider": true, "helm-controller": true}

// Inherit gives the managers of a live object as they must be for the next apply of the release to stand in for
// those of another program that kept it: what that one applied, Manager has. Otherwise an apply would conflict with
// it, and whatever is not applied any more would stay for ever, as the other's. It is nil if there is nothing to
// take over.
func Inherit(live *unstructured.Unstructured) ([]metav1.ManagedFieldsEntry, error) {
	entries := live.GetManagedFields()
	heir := slices.IndexFunc(entries, func(one metav1.ManagedFieldsEntry) bool {
		return one.Manager == Manager && one.Operation == metav1.ManagedFieldsOperationApply && one.Subresource == ""
	})
	if heir < 0 {
		heir = slices.IndexFunc(entries, left)
	}
	if heir < 0 || !slices.ContainsFunc(entries, left) {
		return nil, nil
	}
	ours := &fieldpath.Set{}
	for i, one := range entries {
		// As when going from client-side to server-side apply: what was written in another version is nobody's then.
		if (i != heir && !left(one)) || one.FieldsV1 == nil || one.APIVersion != entries[heir].APIVersion {
			continue
		}
		fields := &fieldpath.Set{}
		if err := fields.FromJSON(bytes.NewReader(one.FieldsV1.GetRawBytes())); err != nil {
			return nil, err
		}
		ours = ours.Union(fields)
	}
	data, err := ours.ToJSON()
	if err != nil {
		return nil, err
	}
	entries[heir].Manager, entries[heir].Operation = Manager, metav1.ManagedFieldsOperationApply
	entries[heir].FieldsV1 = metav1.NewFieldsV1(string(data))
	return slices.DeleteFunc(entries, left), nil
}

// left tells whether a predecessor wrote these fields of an object itself.
func left(one metav1.ManagedFieldsEntry) bool {
	if !predecessors[one.Manager] || one.Subresource != "" {
		return false
	}
	// What they update on objects of their own kinds is their bookkeeping, finalizers above all, and no part of a release.
	group, _, _ := strings.Cut(one.APIVersion, "/")
	return one.Operation == metav1.ManagedFieldsOperationApply || !theirs[group]
}

// keptBy is in whose name a release was applied: a predecessor's while there is nothing of ours.
func keptBy(entries []entry) func(entry) bool {
	ours := func(one entry) bool { return one.Manager == Manager && one.Operation == "Apply" }
	if slices.ContainsFunc(entries, ours) {
		return ours
	}
	return func(one entry) bool { return predecessors[one.Manager] && one.Operation == "Apply" }
}
