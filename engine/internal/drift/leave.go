package drift

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Leave takes out of an object that is about to be applied what another manager has at the places below a pointer;
// a step `*` is any one. What nobody else has stays: without it, applying would remove it from the live object.
func Leave(object map[string]any, live *unstructured.Unstructured, pointer string) {
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, step := range steps {
		steps[i] = unescape.Replace(step)
	}
	leave(object, live.Object, nil, steps, live)
}

// leave says whether a node is to be taken out of what holds it.
func leave(node, beside any, at Path, steps []string, live *unstructured.Unstructured) bool {
	switch container := node.(type) {
	case map[string]any:
		other, _ := beside.(map[string]any)
		for key, inner := range container {
			if leads(steps, key) && leave(inner, other[key], append(slices.Clone(at), key), after(steps), live) {
				delete(container, key)
			}
		}
		return false
	case []any:
		if len(steps) == 0 {
			return atomic(container) && Owner(live, at) != ""
		}
		elements, _ := beside.([]any)
		for index := range elements {
			if one, there := sameElement(container, elements, index); there && leads(steps, strconv.Itoa(index)) {
				leave(one, elements[index], append(slices.Clone(at), index), after(steps), live)
			}
		}
		return false
	}
	return len(steps) == 0 && Owner(live, at) != ""
}

// leads tells whether a step goes where a pointer points, or below that.
func leads(steps []string, step string) bool {
	return len(steps) == 0 || steps[0] == "*" || steps[0] == step
}

func after(steps []string) []string {
	return steps[min(1, len(steps)):]
}

// atomic tells whether a list has one owner: the elements of one of objects have theirs.
func atomic(list []any) bool {
	return !slices.ContainsFunc(list, func(one any) bool {
		_, object := one.(map[string]any)
		return object
	})
}
