package drift

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Owners gives what names the field manager, other than Helm, that has the value at a path of a live object; the
// one that wrote last if there are several. It is empty where the field was removed, or nobody else claims it.
func Owners(live *unstructured.Unstructured) func(Path) string {
	others := others(live)
	return func(path Path) string {
		found := latest(slices.DeleteFunc(slices.Clone(others), func(one holder) bool { return !owns(one.fields, live.Object, path) }))
		if found == nil {
			return ""
		}
		return found.manager
	}
}

// owns follows a path through a set of fields; a set that ends before the path does owns all below.
func owns(fields map[string]any, value any, path Path) bool {
	if len(path) == 0 {
		return true
	}
	below := below(fields)
	if len(below) == 0 {
		return true
	}
	switch step := path[0].(type) {
	case string:
		inner, ok := below["f:"+step].(map[string]any)
		object, _ := value.(map[string]any)
		return ok && owns(inner, object[step], path[1:])
	case int:
		list, _ := value.([]any)
		if step >= len(list) {
			return false
		}
		inner, ok := element(below, list[step])
		return ok && owns(inner, list[step], path[1:])
	}
	return false
}

// below leaves out the dot, which stands for the node itself.
func below(fields map[string]any) map[string]any {
	if _, dotted := fields["."]; !dotted {
		return fields
	}
	out := make(map[string]any, len(fields))
	for key, value := range fields {
		if key != "." {
			out[key] = value
		}
	}
	return out
}

// element finds the fields of a list's element by its keys or by its value.
func element(fields map[string]any, value any) (map[string]any, bool) {
	for key, inner := range fields {
		text, keyed := strings.CutPrefix(key, "k:")
		literal, valued := strings.CutPrefix(key, "v:")
		if keyed && hasKeys(value, text) || valued && isValue(value, literal) {
			found, ok := inner.(map[string]any)
			return found, ok
		}
	}
	return nil, false
}

func hasKeys(value any, text string) bool {
	var keys map[string]any
	object, ok := value.(map[string]any)
	if !ok || json.Unmarshal([]byte(text), &keys) != nil {
		return false
	}
	for key, wanted := range keys {
		if !equal(object[key], wanted) {
			return false
		}
	}
	return true
}

func isValue(value any, text string) bool {
	var wanted any
	return json.Unmarshal([]byte(text), &wanted) == nil && equal(value, wanted)
}

// equal compares what two decoders made of JSON: whole numbers may be int64 or float64.
func equal(one, other any) bool {
	if whole, ok := one.(int64); ok {
		one = float64(whole)
	}
	return reflect.DeepEqual(one, other)
}
