package drift

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

func managed(entries ...string) []byte { return []byte("[" + strings.Join(entries, ",") + "]") }

func by(manager, operation, subresource, at, fields string) string {
	return fmt.Sprintf(`{"manager":%q,"operation":%q,"subresource":%q,"time":%q,"fieldsType":"FieldsV1","fieldsV1":%s}`,
		manager, operation, subresource, at, fields)
}

const noon, later = "2026-11-15T12:00:00Z", "2026-11-15T12:00:01Z"

func TestOwnFollowsWhatHelmApplied(t *testing.T) {
	helm := by("helm", "Apply", "", noon, `{"f:data":{"f:a":{},"f:b":{}}}`)
	base := Of(managed(helm), Meta{Generation: 1, ResourceVersion: "5"})
	if base.Own == 0 || base.Version != 5 {
		t.Fatalf("got %+v", base)
	}
	for name, same := range map[string][]byte{
		"another order":           managed(by("helm", "Apply", "", noon, `{"f:data":{"f:b":{},"f:a":{}}}`)),
		"a status":                managed(helm, by("kcm", "Update", "status", later, `{"f:status":{}}`)),
		"a field of somebody's":   managed(helm, by("kubectl", "Update", "", later, `{"f:data":{"f:c":{}}}`)),
		"helm's own second entry": managed(helm, by("helm", "Update", "", later, `{"f:data":{"f:z":{}}}`)),
	} {
		if got := Of(same, Meta{Generation: 2}); got.Own != base.Own {
			t.Errorf("%s changed it", name)
		}
	}
	for name, other := range map[string][]byte{
		"a field taken":   managed(by("helm", "Apply", "", noon, `{"f:data":{"f:a":{}}}`), by("kubectl", "Update", "", later, `{"f:data":{"f:b":{}}}`)),
		"all of it taken": managed(by("kubectl", "Apply", "", later, `{"f:data":{"f:a":{},"f:b":{}}}`)),
		"nothing left":    nil,
	} {
		if got := Of(other, Meta{Generation: 1}); got.Own == base.Own || got.Own == 0 {
			t.Errorf("%s went unnoticed", name)
		}
	}
}

func TestOwnOfWhatWasAppliedFromTheClient(t *testing.T) {
	helm := by("helm", "Update", "", noon, `{"f:data":{"f:a":{},"f:b":{}}}`)
	base := Of(managed(helm), Meta{Generation: 1}).Own
	if Of(managed(by("helm", "Update", "", later, `{"f:data":{"f:a":{},"f:b":{}}}`)), Meta{Generation: 1}).Own != base {
		t.Error("a time is no owner")
	}
	taken := managed(by("helm", "Update", "", noon, `{"f:data":{"f:a":{}}}`), by("kubectl", "Update", "", later, `{"f:data":{"f:b":{}}}`))
	if Of(taken, Meta{Generation: 1}).Own == base {
		t.Error("a field taken went unnoticed")
	}
	if Of(managed(helm), Meta{Generation: 2}).Own == base {
		t.Error("a new spec went unnoticed")
	}
}

func TestSightFollowsEveryWrite(t *testing.T) {
	helm := by("helm", "Apply", "", noon, `{"f:spec":{"f:a":{}}}`)
	meta := Meta{Generation: 1, ResourceVersion: "5", Labels: map[string]string{"a": "b"}}
	base := Of(managed(helm), meta)
	moved := meta
	moved.ResourceVersion = "6"
	if Of(managed(helm, by("kcm", "Update", "status", later, `{}`)), moved).Sight != base.Sight {
		t.Error("a status is no write")
	}
	moved.Stateless = true
	if Of(managed(helm), moved).Sight == base.Sight {
		t.Error("every version of a kind without status is a write")
	}
	for name, other := range map[string]Meta{
		"a spec": {Generation: 2, Labels: meta.Labels}, "a label": {Generation: 1, Labels: map[string]string{"a": "c"}},
		"an annotation": {Generation: 1, Labels: meta.Labels, Annotations: map[string]string{"x": "y"}},
	} {
		if Of(managed(helm), other).Sight == base.Sight {
			t.Errorf("%s went unnoticed", name)
		}
	}
	if Of(managed(helm, by("kubectl", "Update", "", later, `{}`)), meta).Sight == base.Sight {
		t.Error("a writer went unnoticed")
	}
}

func TestEditFollowsEveryWriteButScaling(t *testing.T) {
	helm := by("helm", "Apply", "", noon, `{"f:spec":{"f:a":{}}}`)
	label := `{"f:metadata":{"f:labels":{"f:tier":{}}}}`
	scaled := func(at, fields string) []byte {
		return managed(helm, by("kubectl", "Update", "", later, fields), by("hpa", "Update", "scale", at, `{"f:spec":{"f:replicas":{}}}`))
	}
	const two, three = "2026-11-15T12:00:02Z", "2026-11-15T12:00:03Z"
	meta := Meta{Generation: 3, Labels: map[string]string{"tier": "back"}}
	more := meta
	more.Generation = 4
	base := Of(scaled(two, label), meta)
	again := Of(scaled(three, label), more)
	if again.Edit != base.Edit || again.Sight == base.Sight {
		t.Error("scaling is a write, and nobody's edit")
	}
	if Of(scaled(two, `{}`), more).Edit == base.Edit {
		t.Error("a field that was removed went unnoticed")
	}
	other := meta
	other.Labels = map[string]string{"tier": "front"}
	if Of(scaled(two, label), other).Edit == base.Edit {
		t.Error("a label that its owner set again went unnoticed")
	}
	rewritten := managed(helm, by("kubectl", "Update", "", two, label), by("hpa", "Update", "scale", two, `{"f:spec":{"f:replicas":{}}}`))
	if Of(rewritten, meta).Edit == base.Edit || Of(rewritten, more).Edit == Of(rewritten, meta).Edit {
		t.Error("an edit in the same second as scaling went unnoticed")
	}
}

func TestATraceIsTheSameHoweverTheObjectCame(t *testing.T) {
	entries := managed(by("helm", "Apply", "", noon, `{"f:spec":{"k:{\"port\":80}":{".":{},"f:port":{}},"f:a":{}}}`))
	object := decode(t, `{"metadata":{"generation":3,"resourceVersion":"9","managedFields":`+string(entries)+`}}`)
	got, want := OfObject(object), Of(entries, Meta{Generation: 3, ResourceVersion: "9"})
	if got != want {
		t.Fatalf("%+v is not %+v", got, want)
	}
}

func decode(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := kjson.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestPaths(t *testing.T) {
	live := decode(t, `{"apiVersion":"v1","status":{"a":1},"metadata":{"uid":"1","labels":{"x/y":"1","same":"s"}},
		"spec":{"list":[{"name":"a","v":1},{"name":"b","v":2}],"short":[1],"c":[{"name":"a","v":1},{"name":"b","v":1},{"name":"x"}],"gone":true,"same":{"deep":[1,2]}}}`)
	applied := decode(t, `{"apiVersion":"v2","status":{"a":2},"metadata":{"uid":"2","labels":{"x/y":"2","same":"s"}},
		"spec":{"list":[{"name":"a","v":1},{"name":"b","v":3}],"short":[1,2],"c":[{"name":"b","v":2},{"name":"a","v":1}],"new":{"k":1},"same":{"deep":[1,2]}}}`)
	var got []string
	for _, path := range Paths(live.Object, applied.Object) {
		got = append(got, path.Pointer())
	}
	want := []string{"/metadata/labels/x~1y", "/spec/c", "/spec/c/1/v", "/spec/gone", "/spec/list/1/v", "/spec/new", "/spec/short"}
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	if Paths(live.Object, live.Object) != nil {
		t.Fatal("it differs from itself")
	}
}

func TestOwner(t *testing.T) {
	live := decode(t, `{"metadata":{"managedFields":`+string(managed(
		by("helm", "Apply", "", later, `{"f:spec":{"f:replicas":{},"f:list":{"k:{\"name\":\"a\"}":{"f:v":{}}}}}`),
		by("hpa", "Update", "scale", noon, `{"f:spec":{"f:replicas":{}}}`),
		by("early", "Update", "", noon, `{"f:spec":{"f:list":{"k:{\"name\":\"b\"}":{".":{},"f:v":{}}}}}`),
		by("late", "Update", "", later, `{"f:spec":{"f:list":{"k:{\"name\":\"b\"}":{"f:v":{}}},"f:ports":{"k:{\"port\":80}":{".":{}}}}}`),
		by("atomic", "Update", "", noon, `{"f:spec":{"f:args":{}},"f:metadata":{"f:finalizers":{"v:\"keep\"":{}}}}`),
	))+`,"finalizers":["keep"]},"spec":{"replicas":2,"list":[{"name":"a","v":1},{"name":"b","v":2}],"ports":[{"port":80}],"args":["x"]}}`)
	owner := Owners(live)
	for want, path := range map[string]Path{
		"hpa": {"spec", "replicas"}, "late": {"spec", "list", 1, "v"}, "": {"spec", "list", 0, "v"}, "atomic": {"spec", "args", 0},
	} {
		if got := owner(path); got != want {
			t.Errorf("%v is %q's, want %q", path, got, want)
		}
	}
	if got := owner(Path{"spec", "ports", 0, "port"}); got != "late" {
		t.Errorf("a port is %q's", got)
	}
	if got := owner(Path{"metadata", "finalizers", 0}); got != "atomic" {
		t.Errorf("a finalizer is %q's", got)
	}
	if got := owner(Path{"spec", "removed"}); got != "" {
		t.Errorf("what is not there is %q's", got)
	}
}

func TestWithout(t *testing.T) {
	stored := `{"spec":{"replicas":1,"c":[{"name":"main","image":"a"},{"name":"side","image":"b"}],"n":[{"v":1}]}}`
	live := decode(t, `{"spec":{"replicas":3,"c":[{"name":"injected","image":"z"},{"name":"main","image":"x"},{"name":"side"}],"n":[{"v":2}]}}`)
	for pointer, want := range map[string]string{
		"/spec/replicas":  `{"spec":{"c":[{"image":"a","name":"main"},{"image":"b","name":"side"}],"n":[{"v":1}]}}`,
		"/spec/c/1/image": `{"spec":{"c":[{"name":"main"},{"image":"b","name":"side"}],"n":[{"v":1}],"replicas":1}}`,
		"/spec/n/0/v":     `{"spec":{"c":[{"image":"a","name":"main"},{"image":"b","name":"side"}],"n":[{}],"replicas":1}}`,
		"/spec/other/x":   `{"spec":{"c":[{"image":"a","name":"main"},{"image":"b","name":"side"}],"n":[{"v":1}],"replicas":1}}`,
	} {
		object := decode(t, stored)
		if !Without(object.Object, live.Object, pointer) {
			t.Errorf("%s could not be left", pointer)
		}
		if got, _ := json.Marshal(object.Object); string(got) != want {
			t.Errorf("%s leaves %s", pointer, got)
		}
	}
	for _, pointer := range []string{"/spec/c/0/image", "/spec/c/9/image", "/spec/c/x/image", "/spec/c/1", "/spec/replicas/x"} {
		if Without(decode(t, stored).Object, live.Object, pointer) {
			t.Errorf("%s was left", pointer)
		}
	}
}

func TestPathsAreNotBounded(t *testing.T) {
	live, applied := map[string]any{}, map[string]any{}
	for i := range 300 {
		live[fmt.Sprint("a", i)], applied[fmt.Sprint("a", i)] = "x", "y"
	}
	if got := Paths(map[string]any{"data": live}, map[string]any{"data": applied}); len(got) != 300 {
		t.Errorf("%d differences", len(got))
	}
}

// leaveThese leaves what is at one of some pointers.
func leaveThese(pointers ...string) func(string) (bool, error) {
	return func(pointer string) (bool, error) { return slices.Contains(pointers, pointer), nil }
}

func TestLeave(t *testing.T) {
	live := decode(t, `{"metadata":{"managedFields":`+string(managed(
		by("helm", "Apply", "", noon, `{"f:spec":{"f:replicas":{},"f:c":{"k:{\"name\":\"main\"}":{".":{},"f:name":{},"f:image":{}}}}}`),
		by("them", "Update", "", later, `{"f:spec":{"f:replicas":{},"f:same":{},"f:args":{},
			"f:c":{"k:{\"name\":\"injected\"}":{".":{},"f:name":{},"f:image":{}},"k:{\"name\":\"main\"}":{"f:image":{}}},
			"f:ports":{"k:{\"port\":53,\"protocol\":\"TCP\"}":{"f:name":{}},"k:{\"port\":53,\"protocol\":\"UDP\"}":{"f:name":{}}},
			"f:node":{".":{},"f:extra":{}}}}`),
	))+`},"spec":{"replicas":2,"same":1,"args":["x"],"node":{"extra":1},
		"c":[{"name":"injected","image":"z"},{"name":"main","image":"theirs"}],
		"ports":[{"port":53,"protocol":"TCP","name":"a"},{"port":53,"protocol":"UDP","name":"b"}]}}`)
	stored := `{"kind":"X","spec":{"replicas":1,"same":1,"args":["y"],"node":{"own":1},"c":[{"image":"ours","name":"main"}],` +
		`"ports":[{"name":"u","port":53,"protocol":"UDP"},{"name":"t","port":53}]}}`
	for _, row := range []struct{ pointer, gone, instead string }{
		{"/spec/replicas", `"replicas":1,`, ``},
		{"/spec/c/1/image", `"image":"ours",`, ``}, // though the lists are not equally long
		{"/spec/c/0/image", ``, ``},                // not ours at all
		{"/spec/args", `"args":["y"],`, ``},
		{"/spec/ports/0/name", `"name":"t",`, ``}, // TCP, the default
		{"/spec/ports/1/name", `"name":"u",`, ``},
		{"/spec/same", ``, ``},
		{"/spec/node", ``, ``},
		{"/spec/node/own", ``, ``},
	} {
		object := decode(t, stored)
		stuck, err := Leave(object, live, leaveThese(row.pointer))
		if stuck != nil || err != nil {
			t.Errorf("%s: %v %v", row.pointer, stuck, err)
		}
		want := canonical([]byte(strings.Replace(stored, row.gone, row.instead, 1)))
		if got, _ := json.Marshal(object.Object); string(got) != want {
			t.Errorf("%s leaves %s", row.pointer, got)
		}
	}
	stuck, err := Leave(decode(t, stored), live, leaveThese("/spec/args/0"))
	if err != nil || stuck == nil || *stuck != (Stuck{"/spec/args/0", "them"}) {
		t.Errorf("part of what is applied as a whole: %v %v", stuck, err)
	}
	if _, err := Leave(decode(t, stored), live, func(string) (bool, error) { return false, fmt.Errorf("unknown") }); err == nil {
		t.Error("who cannot know does not go on")
	}
}

func TestScaled(t *testing.T) {
	replicas := `{"f:spec":{"f:replicas":{}}}`
	for _, row := range []struct {
		scaled  bool
		entries []string
	}{
		{true, []string{by("helm", "Apply", "", later, replicas), by("hpa", "Update", "scale", noon, replicas)}},
		{false, []string{by("hpa", "Update", "scale", noon, replicas), by("kubectl", "Update", "", later, replicas)}},
		{false, []string{by("helm", "Apply", "", later, replicas)}},
		{false, []string{by("hpa", "Update", "scale", noon, `{"f:status":{}}`)}},
	} {
		live := decode(t, `{"spec":{"replicas":2},"metadata":{"managedFields":`+string(managed(row.entries...))+`}}`)
		if Scaled(live) != row.scaled {
			t.Errorf("%v", row)
		}
	}
}

func TestSwaps(t *testing.T) {
	theirs := `{"f:spec":{"f:ports":{"k:{\"port\":81,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},"k:{\"port\":90,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}}}}`
	ports := `"ports":[{"port":90,"protocol":"TCP","name":"extra"},{"port":81,"protocol":"TCP","name":"web"}]`
	at := func(entries ...string) *unstructured.Unstructured {
		return decode(t, `{"metadata":{"managedFields":`+string(managed(entries...))+`},"spec":{`+ports+`}}`)
	}
	helm := by("helm", "Apply", "", noon, `{"f:spec":{"f:type":{}}}`)
	object := decode(t, `{"spec":{"ports":[{"port":80,"name":"web"}],"type":"x"}}`)
	live := at(helm, by("them", "Update", "", noon, theirs))
	found := Swaps(object, live)
	if len(found) != 1 || found[0].Path.Pointer() != "/spec/ports/1/port" || found[0].Manager != "them" {
		t.Fatalf("%v: the one that is most like it was put in its place", found)
	}
	entries := Claim(live, found)
	if len(entries) != 2 || string(entries[0].FieldsV1.GetRawBytes()) != `{"f:spec":{"f:ports":{"k:{\"port\":81,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}},"f:type":{}}}` ||
		string(entries[1].FieldsV1.GetRawBytes()) != `{"f:spec":{"f:ports":{"k:{\"port\":90,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}}}}` {
		t.Errorf("%s", entries)
	}
	if got, _ := json.Marshal(Restored(live, found).Object["spec"]); string(got) != `{"ports":[{"name":"extra","port":90,"protocol":"TCP"},{"name":"web","port":80}]}` {
		t.Errorf("with ours in its place: %s", got)
	}
	found[0].Drop()
	if got, _ := json.Marshal(object.Object); string(got) != `{"spec":{"type":"x"}}` {
		t.Errorf("an empty list would be a claim: %s", got)
	}
	object = decode(t, `{"spec":{"ports":[{"port":80,"name":"web"}]}}`)
	for name, live := range map[string]*unstructured.Unstructured{
		"who applies it wants it":   at(helm, by("them", "Apply", "", noon, theirs)),
		"somebody applies it too":   at(helm, by("them", "Update", "", noon, theirs), by("gitops", "Apply", "", noon, theirs)),
		"a controller's":            at(helm, by("them", "Update", "status", noon, theirs)),
		"not known by any key":      at(helm, by("them", "Update", "", noon, `{"f:spec":{"f:ports":{}}}`)),
		"what is gone of the chart": at(helm),
	} {
		if found := Swaps(object, live); found != nil {
			t.Errorf("%s: %v", name, found)
		}
	}
	same := decode(t, `{"spec":{"ports":[{"port":81}]}}`)
	if found := Swaps(same, at(helm, by("them", "Update", "", noon, theirs))); found != nil {
		t.Errorf("nothing of ours is gone: %v", found)
	}
	if Claim(at(by("them", "Update", "", noon, theirs)), Swaps(object, at(by("them", "Update", "", noon, theirs)))) != nil {
		t.Error("nothing was applied by the release")
	}
}
