package drift

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Path leads to one place in an object: keys, and indexes in lists.
type Path []any

// unset are the fields an API server fills in or a release has no say in.
var unset = map[string]bool{
	"managedFields": true, "resourceVersion": true, "generation": true, "uid": true, "creationTimestamp": true,
	"selfLink": true, "deletionTimestamp": true, "deletionGracePeriodSeconds": true,
}

// Paths are the places in which a live object differs from the one that applying again would make of it. They are
// not bounded: what is put back and what is left is decided by them.
func Paths(live, applied map[string]any) []Path {
	var out []Path
	for _, key := range keysOf(live, applied) {
		switch key {
		case "apiVersion", "kind", "status":
		case "metadata":
			was, _ := live[key].(map[string]any)
			is, _ := applied[key].(map[string]any)
			for _, inner := range keysOf(was, is) {
				if !unset[inner] {
					out = differ(out, Path{key, inner}, was[inner], is[inner])
				}
			}
		default:
			out = differ(out, Path{key}, live[key], applied[key])
		}
	}
	return out
}

func differ(out []Path, at Path, live, applied any) []Path {
	if reflect.DeepEqual(live, applied) {
		return out
	}
	switch was := live.(type) {
	case map[string]any:
		if is, ok := applied.(map[string]any); ok {
			for _, key := range keysOf(was, is) {
				out = differ(out, append(slices.Clone(at), key), was[key], is[key])
			}
			return out
		}
	case []any:
		if is, ok := applied.([]any); ok {
			return differLists(out, at, was, is)
		}
	}
	return append(out, at)
}

// differLists tells of elements that came or went by the list itself, and of those in both one by one.
func differLists(out []Path, at Path, live, applied []any) []Path {
	if len(live) != len(applied) {
		out = append(out, at)
	}
	for index, was := range live {
		is, both := any(nil), len(live) == len(applied)
		if both {
			is = applied[index]
		} else {
			is, both = sameElement(applied, live, index)
		}
		if both {
			out = differ(out, append(slices.Clone(at), index), was, is)
		}
	}
	return out
}

func keysOf(one, other map[string]any) []string {
	keys := make([]string, 0, len(one))
	for key := range one {
		keys = append(keys, key)
	}
	for key := range other {
		if _, both := one[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// Pointer spells a path as a JSON pointer (RFC 6901).
func (p Path) Pointer() string {
	var out strings.Builder
	for _, step := range p {
		out.WriteByte('/')
		switch step := step.(type) {
		case string:
			out.WriteString(escape.Replace(step))
		case int:
			out.WriteString(strconv.Itoa(step))
		}
	}
	return out.String()
}

// Without takes the place a pointer names out of an object that is about to be applied. The pointer counts list
// elements as the live object has them, so they are found by their name. It says whether that could be done.
func Without(object, live map[string]any, pointer string) bool {
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	return without(object, live, steps)
}

func without(node, live any, steps []string) bool {
	step := unescape.Replace(steps[0])
	switch container := node.(type) {
	case map[string]any:
		inner, there := container[step]
		if !there {
			return true
		}
		if len(steps) == 1 {
			delete(container, step)
			return true
		}
		beside, _ := live.(map[string]any)
		return without(inner, beside[step], steps[1:])
	case []any:
		elements, _ := live.([]any)
		index, err := strconv.Atoi(step)
		if err != nil || index < 0 || index >= len(elements) || len(steps) == 1 {
			return false
		}
		found, ok := sameElement(container, elements, index)
		return ok && without(found, elements[index], steps[1:])
	}
	return false
}

// sameElement finds the element of a list that stands for the one at an index of another.
func sameElement(list, live []any, index int) (any, bool) {
	wanted, ok := live[index].(map[string]any)
	if !ok {
		return nil, false
	}
	if name, named := wanted["name"].(string); named {
		for _, one := range list {
			if fields, ok := one.(map[string]any); ok && fields["name"] == name {
				return one, true
			}
		}
		return nil, false
	}
	if len(list) != len(live) {
		return nil, false
	}
	return list[index], true
}
