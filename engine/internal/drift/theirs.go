package drift

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Stuck is a place that cannot be left to its manager while what is around it is applied.
type Stuck struct{ Pointer, Manager string }

// Leave takes out of an object that is about to be applied whatever another manager has in the live one, with
// another value, and `leaves` says is to stay so. Pointers count list elements as the live object has them;
// `leaves` is asked about such places only. What others removed is nobody's, and is applied.
func Leave(object, live *unstructured.Unstructured, leaves func(pointer string) (bool, error)) (*Stuck, error) {
	w := &walk{leaves: leaves}
	others := others(live)
	for _, key := range slices.Sorted(maps.Keys(object.Object)) {
		if key == "apiVersion" || key == "kind" || key == "status" {
			continue
		}
		if err := w.field(object.Object, live.Object, Path{key}, others); err != nil {
			return nil, err
		}
	}
	return w.stuck, nil
}

// Scaled tells whether another manager has the replicas of a live object, and last wrote them by scaling it.
func Scaled(live *unstructured.Unstructured) bool {
	found := latest(slices.DeleteFunc(others(live), func(one holder) bool {
		return !owns(one.fields, live.Object, Path{"spec", "replicas"})
	}))
	return found != nil && found.subresource == "scale"
}

// holder is a manager other than Helm, and the fields it has from some place of an object on.
type holder struct {
	manager, operation, subresource, version string
	at                                       int64
	fields                                   map[string]any
}

func others(live *unstructured.Unstructured) []holder {
	var out []holder
	for _, one := range live.GetManagedFields() {
		if one.Manager == Manager || one.FieldsV1 == nil {
			continue
		}
		found := holder{
			manager: one.Manager, operation: string(one.Operation), subresource: one.Subresource, version: one.APIVersion,
		}
		if json.Unmarshal(one.FieldsV1.GetRawBytes(), &found.fields) != nil {
			continue
		}
		if one.Time != nil {
			found.at = one.Time.Unix()
		}
		out = append(out, found)
	}
	return out
}

// latest is the holder that wrote last.
func latest(holders []holder) *holder {
	var out *holder
	for i, one := range holders {
		if out == nil || one.at > out.at {
			out = &holders[i]
		}
	}
	return out
}

// inside are the holders of something below, each with its fields there.
func inside(holders []holder, step func(fields map[string]any) (map[string]any, bool)) []holder {
	var out []holder
	for _, one := range holders {
		if inner, ok := step(one.fields); ok {
			one.fields = inner
			out = append(out, one)
		}
	}
	return out
}

type walk struct {
	leaves func(pointer string) (bool, error)
	stuck  *Stuck
}

// field looks at one key of a map, the last step of the path, and takes it out if it is to be left.
func (w *walk) field(desired, live map[string]any, at Path, holders []holder) error {
	key := at[len(at)-1].(string)
	was, there := live[key]
	inner := inside(holders, func(fields map[string]any) (map[string]any, bool) {
		found, ok := fields["f:"+key].(map[string]any)
		return found, ok
	})
	if !there || len(inner) == 0 {
		return nil
	}
	whole := latest(slices.DeleteFunc(slices.Clone(inner), func(one holder) bool { return len(one.fields) > 0 }))
	if whole == nil {
		return w.below(desired[key], was, at, inner)
	}
	if reflect.DeepEqual(desired[key], was) {
		return nil
	}
	left, err := w.leaves(at.Pointer())
	if err != nil {
		return err
	}
	if left {
		delete(desired, key)
		return nil
	}
	return w.within(desired[key], was, at, whole.manager)
}

func (w *walk) below(desired, live any, at Path, holders []holder) error {
	switch desired := desired.(type) {
	case map[string]any:
		was, _ := live.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(desired)) {
			if err := w.field(desired, was, append(slices.Clone(at), key), holders); err != nil {
				return err
			}
		}
	case []any:
		was, _ := live.([]any)
		for index, there := range was {
			inner := inside(holders, func(fields map[string]any) (map[string]any, bool) { return element(fields, there) })
			wanted := counterpart(desired, holders, there)
			if len(inner) == 0 || wanted == nil {
				continue
			}
			if err := w.below(wanted, there, append(slices.Clone(at), index), inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// within notes what is to be left inside of something that is applied as a whole or not at all.
func (w *walk) within(desired, live any, at Path, manager string) error {
	if w.stuck != nil || reflect.TypeOf(desired) != reflect.TypeOf(live) {
		return nil
	}
	for _, place := range differ(nil, at, live, desired) {
		left, err := w.leaves(place.Pointer())
		if err != nil {
			return err
		}
		if left {
			w.stuck = &Stuck{Pointer: place.Pointer(), Manager: manager}
			return nil
		}
	}
	return nil
}

// counterpart finds the element about to be applied that has the keys under which others know a live one.
func counterpart(desired []any, holders []holder, live any) map[string]any {
	text, keyed := strings.CutPrefix(keyOf(holders, live), "k:")
	for _, wanted := range desired {
		if keyed && meansKeys(wanted, text) {
			return wanted.(map[string]any)
		}
	}
	return nil
}

// keyOf is the name that sets of fields have for an element of a keyed list, if any of these holders has it.
func keyOf(holders []holder, live any) string {
	for _, one := range holders {
		for key := range one.fields {
			if text, keyed := strings.CutPrefix(key, "k:"); keyed && hasKeys(live, text) {
				return key
			}
		}
	}
	return ""
}

// meansKeys tells whether an element that nobody has filled in yet will have those keys.
func meansKeys(value any, text string) bool {
	var keys map[string]any
	object, ok := value.(map[string]any)
	if !ok || json.Unmarshal([]byte(text), &keys) != nil {
		return false
	}
	said := 0
	for key, wanted := range keys {
		is, there := object[key]
		switch {
		case there && equal(is, wanted):
			said++
		case there, key == "protocol" && wanted != "TCP": // the one key that has a default
			return false
		}
	}
	return said > 0
}
