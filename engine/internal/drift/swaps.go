package drift

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Swap is an element of a keyed list that somebody put in the place of one of the release's, by changing its key.
// Server-side apply would keep it beside the release's own, and the two may not go together.
type Swap struct {
	Path    Path   // the key of their element, as the live object counts
	Manager string // whose it is

	steps  []string // to their element, as managedFields name them
	parent map[string]any
	list   string
	ours   map[string]any
	theirs map[string]any
	beside []any // other elements of ours that are not there, told with the first swap of a list
}

// Swaps finds what was put in the place of elements of an object about to be applied. Only what was written by
// plain updates counts, as editing by hand does: who applies an element wants it.
func Swaps(object, live *unstructured.Unstructured) []Swap {
	w := &swapWalk{live: live}
	hands := slices.DeleteFunc(others(live), func(one holder) bool { return !byHand(one) })
	for _, key := range slices.Sorted(maps.Keys(object.Object)) {
		if key != "metadata" && key != "status" {
			w.field(object.Object, live.Object, key, place{}, hands)
		}
	}
	return w.found
}

// Drop takes the release's own element out of the object about to be applied: theirs is left.
func (s Swap) Drop() { s.drop([]any{s.ours}) }

// DropMissing takes out whatever of the list is not there, so that the rest of the object can be rehearsed.
func (s Swap) DropMissing() { s.drop(append([]any{s.ours}, s.beside...)) }

func (s Swap) drop(elements []any) {
	list, _ := s.parent[s.list].([]any)
	kept := slices.DeleteFunc(slices.Clone(list), func(one any) bool {
		return slices.ContainsFunc(elements, func(gone any) bool {
			return reflect.ValueOf(one).Pointer() == reflect.ValueOf(gone).Pointer()
		})
	})
	if len(kept) == 0 {
		delete(s.parent, s.list)
		return
	}
	s.parent[s.list] = kept
}

// Restored is the live object with the release's own elements where others are now.
func Restored(live *unstructured.Unstructured, swaps []Swap) *unstructured.Unstructured {
	out := live.DeepCopy()
	for _, swap := range swaps {
		end := len(swap.Path) - 2 // the index of the element, and its key
		restore(out.Object, swap.Path[:end], func(list []any) []any {
			list[swap.Path[end].(int)] = runtime.DeepCopyJSONValue(swap.ours)
			for _, one := range swap.beside {
				list = append(list, runtime.DeepCopyJSONValue(one))
			}
			return list
		})
	}
	return out
}

// restore changes the list at a path.
func restore(node any, path Path, change func([]any) []any) any {
	switch container := node.(type) {
	case map[string]any:
		key := path[0].(string)
		container[key] = restore(container[key], path[1:], change)
	case []any:
		if len(path) == 0 {
			return change(container)
		}
		index := path[0].(int)
		container[index] = restore(container[index], path[1:], change)
	}
	return node
}

func byHand(one holder) bool { return one.operation == "Update" && one.subresource == "" }

// place is where a walk is: as the live object counts, and as managedFields name it.
type place struct {
	at    Path
	steps []string
}

func (p place) to(step any, name string) place {
	return place{append(slices.Clone(p.at), step), append(slices.Clone(p.steps), name)}
}

type swapWalk struct {
	live  *unstructured.Unstructured
	found []Swap
}

func (w *swapWalk) field(desired, live map[string]any, key string, from place, holders []holder) {
	name := "f:" + key
	inner := inside(holders, func(fields map[string]any) (map[string]any, bool) {
		found, ok := fields[name].(map[string]any)
		return found, ok
	})
	if len(inner) == 0 {
		return
	}
	switch was := live[key].(type) {
	case map[string]any:
		is, _ := desired[key].(map[string]any)
		for _, next := range slices.Sorted(maps.Keys(is)) {
			w.field(is, was, next, from.to(key, name), inner)
		}
	case []any:
		w.list(desired, key, was, from.to(key, name), inner)
	}
}

// list looks through a keyed list: for elements of ours that are gone, and of theirs that came.
func (w *swapWalk) list(parent map[string]any, key string, live []any, from place, holders []holder) {
	ours, _ := parent[key].([]any)
	var names []string
	var theirs []Swap
	for index, there := range live {
		name := keyOf(holders, there)
		if name == "" {
			continue
		}
		element, to := there.(map[string]any), from.to(index, name)
		names = namesIn(name)
		inner := inside(holders, func(fields map[string]any) (map[string]any, bool) {
			found, ok := fields[name].(map[string]any)
			return found, ok
		})
		if wanted := counterpart(ours, holders, there); wanted != nil {
			for _, next := range slices.Sorted(maps.Keys(wanted)) {
				w.field(wanted, element, next, to, inner)
			}
		} else if !w.wanted(to.steps) {
			theirs = append(theirs, Swap{
				Path: to.at, Manager: latest(inner).manager, steps: to.steps, parent: parent, list: key, theirs: element,
			})
		}
	}
	w.pair(ours, theirs, live, names)
}

// pair puts each element of ours that is gone beside the one of theirs that is most like it.
func (w *swapWalk) pair(ours []any, theirs []Swap, live []any, names []string) {
	first := len(w.found)
	for _, one := range ours {
		wanted, ok := one.(map[string]any)
		if !ok || slices.ContainsFunc(live, func(there any) bool { return sameKeys(wanted, there, names) }) {
			continue
		}
		if len(theirs) == 0 {
			if len(w.found) > first {
				w.found[first].beside = append(w.found[first].beside, wanted)
			}
			continue
		}
		best := mostAlike(wanted, theirs)
		swap := theirs[best]
		swap.ours = wanted
		swap.Path = append(swap.Path, changedKey(wanted, swap.theirs, names))
		w.found = append(w.found, swap)
		theirs = slices.Delete(theirs, best, best+1)
	}
}

// wanted tells whether an element has an owner that did not come by it in an edit: one that applies it.
func (w *swapWalk) wanted(steps []string) bool {
	for _, one := range w.live.GetManagedFields() {
		if one.Operation != metav1.ManagedFieldsOperationApply || one.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(one.FieldsV1.GetRawBytes(), &fields) == nil && cut(fields, steps) != nil {
			return true
		}
	}
	return false
}

func namesIn(key string) []string {
	var keys map[string]any
	_ = json.Unmarshal([]byte(key[len("k:"):]), &keys)
	return slices.Sorted(maps.Keys(keys))
}

// sameKeys tells whether an element about to be applied is the one that is there.
func sameKeys(wanted map[string]any, there any, names []string) bool {
	element, ok := there.(map[string]any)
	keys := map[string]any{}
	for _, name := range names {
		keys[name] = element[name]
	}
	text, err := json.Marshal(keys)
	return ok && err == nil && meansKeys(wanted, string(text))
}

// changedKey is the first key in which two elements differ.
func changedKey(wanted, there map[string]any, names []string) string {
	for _, name := range names {
		if is, said := wanted[name]; said && !reflect.DeepEqual(is, there[name]) {
			return name
		}
	}
	return names[len(names)-1] // one that is not said: the default
}

// mostAlike is the index of the element that has most fields in common with one.
func mostAlike(wanted map[string]any, theirs []Swap) int {
	best, most := 0, -1
	for i, swap := range theirs {
		count := 0
		for key, value := range wanted {
			if reflect.DeepEqual(value, swap.theirs[key]) {
				count++
			}
		}
		if count > most {
			best, most = i, count
		}
	}
	return best
}
