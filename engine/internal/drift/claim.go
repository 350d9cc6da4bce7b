package drift

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Claim gives the managers of a live object as they must be for the next apply of the release to remove their
// elements: as if it had applied them. It is nil if the release has applied nothing of the object.
func Claim(live *unstructured.Unstructured, swaps []Swap) []metav1.ManagedFieldsEntry {
	entries := live.GetManagedFields()
	own := slices.IndexFunc(entries, func(one metav1.ManagedFieldsEntry) bool {
		return one.Manager == Manager && one.Operation == metav1.ManagedFieldsOperationApply && one.Subresource == ""
	})
	if own < 0 || entries[own].FieldsV1 == nil {
		return nil
	}
	var ours map[string]any
	if json.Unmarshal(entries[own].FieldsV1.GetRawBytes(), &ours) != nil {
		return nil
	}
	for i, one := range entries {
		var fields map[string]any
		if i == own || one.Subresource != "" || one.APIVersion != entries[own].APIVersion || one.FieldsV1 == nil ||
			json.Unmarshal(one.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for _, swap := range swaps {
			if element := cut(fields, swap.steps); element != nil {
				graft(ours, swap.steps, element)
			}
		}
		entries[i].FieldsV1 = encoded(fields)
	}
	entries[own].FieldsV1 = encoded(ours)
	return slices.DeleteFunc(entries, func(one metav1.ManagedFieldsEntry) bool {
		return one.Subresource == "" && one.FieldsV1 != nil && string(one.FieldsV1.GetRawBytes()) == "{}"
	})
}

func encoded(fields map[string]any) *metav1.FieldsV1 {
	data, _ := json.Marshal(fields)
	return metav1.NewFieldsV1(string(data))
}

// cut takes the fields at the end of some steps out of a set, with whatever is empty then: that would be a claim.
func cut(fields map[string]any, steps []string) map[string]any {
	inner, ok := fields[steps[0]].(map[string]any)
	if !ok {
		return nil
	}
	if len(steps) == 1 {
		delete(fields, steps[0])
		return inner
	}
	found := cut(inner, steps[1:])
	if found != nil && len(inner) == 0 {
		delete(fields, steps[0])
	}
	return found
}

func graft(fields map[string]any, steps []string, element map[string]any) {
	inner, ok := fields[steps[0]].(map[string]any)
	if !ok {
		inner = map[string]any{}
		fields[steps[0]] = inner
	}
	if len(steps) > 1 {
		graft(inner, steps[1:], element)
		return
	}
	maps.Copy(inner, element)
}
