package observe

import (
	"fmt"
	"testing"

	"github.com/pilothouse-dev/pilothouse/engine/internal/drift"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

var app = releaseKey{"ns", "app"}

func seen(own, sight, version uint64) objectState {
	return objectState{state: enginev1.ObjectState_CURRENT, trace: drift.Trace{Own: own, Sight: sight, Version: version}}
}

// altered checks what the reader is told of `a` since the last time.
func (s *scene) altered(want string) {
	s.Helper()
	got := ""
	if batch := s.reader.take(); batch != nil {
		for _, objects := range batch.GetObjects() {
			for _, one := range objects.GetStates() {
				got += fmt.Sprintf("%s:%d/%d ", one.GetRef().GetName(), one.GetAltered(), one.GetSight())
			}
		}
	}
	if got != want {
		s.Fatalf("told %q, want %q", got, want)
	}
}

func applied(name string, own, version uint64) map[inventory.Ref]drift.Trace {
	return map[inventory.Ref]drift.Trace{refs(name)[0]: {Own: own, Version: version}}
}

func TestOurOwnInstallIsNotAltered(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a")
	s.model.putRecord(rec(1, "pending-install"))
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): seen(7, 1, 10)})
	s.altered("a:0/0 ") // being made
	s.model.setApplied(app, 1, applied("a", 7, 10))
	s.model.putRecord(rec(1, "deployed"))
	s.altered("")
	s.model.putObject(configMaps, key("a"), seen(7, 2, 11)) // somebody's own field
	s.altered("")
	s.model.putObject(configMaps, key("a"), seen(8, 3, 12))
	s.altered("a:8/3 ")
	s.model.putObject(configMaps, key("a"), seen(8, 4, 13))
	s.altered("a:8/4 ")
	s.model.putObject(configMaps, key("a"), seen(7, 5, 14))
	s.altered("a:0/0 ")
}

func TestAnUpgradeIsNotSeenThroughOldEyes(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1], s.hands.inventories[2] = refs("a"), refs("a")
	s.hands.applied = map[int][]uint64{1: {7}}
	s.model.putRecord(rec(1, "deployed"))
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): seen(7, 1, 10)})
	s.altered("a:0/0 ")
	s.model.putRecord(rec(2, "pending-upgrade"))
	s.model.setApplied(app, 2, applied("a", 9, 20))
	s.model.putRecord(rec(2, "deployed"))
	s.altered("a:0/0 ") // the watch is behind: it shows what was before
	s.model.putObject(configMaps, key("a"), seen(9, 2, 20))
	s.altered("")
}

func TestWhatWasNeverComparedIsAltered(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[3] = refs("a")
	s.model.putRecord(rec(3, "deployed"))
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): seen(7, 1, 10)})
	s.altered("a:7/1 ")
	s.hands.asked = nil
	s.model.setApplied(app, 3, applied("a", 7, 10)) // it was equal
	s.altered("a:0/0 ")
	s.asked("remember 3")
	s.model.dropObject(configMaps, key("a"))
	s.model.checked(configMaps, key("a"), seen(8, 2, 11)) // it lost its label
	s.altered("a:8/2 ")
	s.model.putRecord(rec(3, "uninstalling"))
	s.model.putObject(configMaps, key("a"), seen(9, 3, 12))
	s.altered("") // what is being removed is nobody's drift
}

func TestLookReadsWhoWroteAnObject(t *testing.T) {
	const text = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"12","labels":{"l":"1"},
		"managedFields":[{"manager":"helm","operation":"Apply","fieldsV1":{"f:data":{}}}]}}`
	head, data, err := raw.Strip([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	state, err := computeMetadata(data)
	if err != nil {
		t.Fatal(err)
	}
	state.look(&head, data, true)
	if state.trace.Own == 0 || state.trace.Version != 12 {
		t.Fatalf("got %+v", state.trace)
	}
	controlled := objectState{controlled: true}
	head, data, _ = raw.Strip([]byte(text))
	controlled.look(&head, data, true)
	if controlled.trace != (drift.Trace{}) || head.Managed() != nil {
		t.Fatal("nobody asks about it, and it pins memory")
	}
}
