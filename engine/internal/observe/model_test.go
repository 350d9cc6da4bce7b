package observe

import (
	"fmt"
	"testing"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

func TestOurOwnInstall(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a", "b")
	s.model.putRecord(rec(1, "pending-install"))
	s.asked("watch ConfigMap")
	s.told("r1=pending-install")
	s.model.replaceObjects(configMaps, nil)
	s.asked() // objects are about to be made: nothing to look for
	s.model.putObject(configMaps, key("a"), current)
	s.model.putRecord(rec(1, "deployed"))
	s.asked("check ConfigMap b false", "remember 1")
	s.told("r1=deployed")
	s.model.putObject(configMaps, key("b"), current)
	s.told("o1=[a:CURRENT b:CURRENT]")
	if s.model.unseen(configMaps, key("b")) {
		t.Fatal("the watch has shown it: the read is not needed")
	}
	s.model.putObject(configMaps, key("b"), objectState{state: enginev1.ObjectState_CURRENT, generation: 2})
	s.told("")
	s.model.putObject(configMaps, key("b"), failed)
	s.told("o1+[b:FAILED]")
}

func TestGoneIsReadFirst(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a")
	s.model.putRecord(rec(1, "deployed"))
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current})
	s.told("r1=deployed o1=[a:CURRENT]")
	s.asked("watch ConfigMap", "remember 1")

	s.model.dropObject(configMaps, key("a"))
	s.asked("check ConfigMap a true")
	s.told("")
	s.model.checked(configMaps, key("a"), current) // it only lost its label
	s.told("")

	s.model.putObject(configMaps, key("a"), current)
	s.model.dropObject(configMaps, key("a"))
	s.model.checked(configMaps, key("a"), notFound)
	s.told("o1+[a:NOT_FOUND]")

	s.model.dropObject(configMaps, key("a"))
	s.model.putObject(configMaps, key("a"), current) // made again while it was being read
	s.model.checked(configMaps, key("a"), notFound)
	s.told("o1+[a:CURRENT]")
}

func TestForeignReleaseIsRead(t *testing.T) {
	s := newScene(t)
	s.model.putRecord(rec(3, "deployed"))
	s.asked("load 3")
	r := rec(3, "deployed")
	s.model.setInventory(r, refs("a"), r.secretState)
	s.asked("watch ConfigMap") // it came from disk: nothing to remember
	s.model.replaceObjects(configMaps, nil)
	s.asked("check ConfigMap a false")
	s.model.checked(configMaps, key("a"), notFound)
	s.told("r3=deployed o3=[a:NOT_FOUND]")
}

func TestInventoryPutAfterItsRecord(t *testing.T) {
	s := newScene(t)
	s.model.putRecord(rec(1, "pending-install"))
	s.asked()
	s.hands.inventories[1] = refs("a")
	s.model.inventoryPut(releaseKey{"ns", "app"}, 1)
	s.asked("watch ConfigMap")
}

func TestUpgradeChangesMembers(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a", "job")
	s.model.putRecord(rec(1, "deployed"))
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current, key("b"): current})
	s.model.replaceObjects(jobs, map[objectKey]objectState{key("job"): current})
	s.told("r1=deployed o1=[a:CURRENT job:CURRENT]")
	s.asked("watch ConfigMap", "watch Job", "remember 1")

	s.hands.inventories[2] = refs("b")
	s.model.putRecord(rec(2, "pending-upgrade"))
	s.asked("forget 1", "unwatch Job")
	s.told("r2=pending-upgrade o2=[b:CURRENT]")
	s.model.dropObject(configMaps, key("a")) // as the upgrade does: nobody's any more
	s.asked()
	s.model.putRecord(rec(1, "superseded"))
	s.model.putRecord(rec(2, "deployed"))
	s.told("r1=superseded r2=deployed")
	s.asked("remember 2")
	s.model.retire(jobs)
	s.model.retire(configMaps)
	s.asked("end Job")
}

func TestUninstall(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a")
	s.model.putRecord(rec(1, "deployed"))
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current})
	s.told("r1=deployed o1=[a:CURRENT]")
	s.model.putRecord(rec(1, "uninstalling"))
	s.asked("watch ConfigMap", "remember 1")
	s.model.dropObject(configMaps, key("a"))
	s.told("r1=uninstalling o1+[a:NOT_FOUND]")
	s.model.dropRecord(rec(1, "uninstalling"))
	s.asked("forget 1", "unwatch ConfigMap")
	s.told("r1=gone")
	if len(s.model.releases) != 0 {
		t.Fatal("something is kept of a release that is gone")
	}
}

func TestBlindKind(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a", "job")
	s.model.putRecord(rec(1, "deployed"))
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current})
	s.asked("watch ConfigMap", "watch Job", "remember 1")
	s.model.blind(jobs, true)
	s.asked("check Job job true")
	s.model.checked(jobs, key("job"), unknown("no such kind"))
	s.told("r1=deployed o1=[a:CURRENT job:UNKNOWN]")
	if got := s.model.unknownKinds(); len(got) != 1 || got[0] != jobs {
		t.Fatalf("got %v", got)
	}
	s.model.again(jobs)
	s.model.replaceObjects(jobs, map[objectKey]objectState{key("job"): current})
	s.asked("watch Job")
	s.told("o1+[job:CURRENT]")
}

func TestClusterScopeIsLearned(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("job")
	s.model.putRecord(rec(1, "deployed"))
	s.model.scope(jobs, true)
	s.model.replaceObjects(jobs, map[objectKey]objectState{{"", "job"}: current})
	s.told("r1=deployed o1=[job:CURRENT]")
	if ref := s.model.releases[releaseKey{"ns", "app"}].members[0].ref; ref.Namespace != "" {
		t.Fatalf("got %v", ref)
	}
}

func TestControlledObjectsAreNotMembers(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a", "b")
	s.model.putRecord(rec(1, "deployed"))
	owned := current
	owned.controlled = true
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current, key("b"): owned, key("c"): owned})
	s.told("r1=deployed o1=[a:CURRENT]")
	if got := len(s.model.kinds[configMaps].objects); got != 1 {
		t.Fatalf("keeps %d objects, want 1", got)
	}
	s.model.putObject(configMaps, key("b"), current)
	s.told("o1=[a:CURRENT b:CURRENT]")
}

func TestUnreadableRecord(t *testing.T) {
	s := newScene(t)
	s.model.putRecord(rec(1, "deployed"))
	s.model.setUnreadable(rec(1, "deployed"), "not base64")
	s.told("r1=deployed o1=[sh.helm.release.v1.app:UNKNOWN]")
	s.model.putRecord(rec(1, "failed"))
	s.told("r1=failed")
}

func TestRelistFindsWhatIsGone(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1], s.hands.inventories[2] = refs("a"), refs("a", "b")
	s.model.replaceRecords("", []*record{rec(1, "superseded"), rec(2, "deployed")})
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current, key("b"): current})
	s.told("r1=superseded r2=deployed o2=[a:CURRENT b:CURRENT]")
	s.hands.asked = nil
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current})
	s.asked("check ConfigMap b true")
	s.model.replaceRecords("", []*record{rec(1, "superseded")})
	s.told("r2=gone o1=[a:CURRENT]")
}

func TestLateReaderGetsEverything(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a")
	s.model.putRecord(rec(1, "deployed"))
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): failed})
	s.model.fail(&enginev1.Fault{})
	s.told("r1=deployed o1=[a:FAILED] fault")
	s.reader = s.model.subscribe()
	s.told("reset r1=deployed synced o1=[a:FAILED] fault")
	s.model.fail(&enginev1.Fault{}) // still
	s.told("")
	s.model.work()
	s.told("recovered")
}

func TestManyRecordsAreSplit(t *testing.T) {
	s := newScene(t)
	for i := range maxBatch + 5 {
		r := rec(1, "superseded")
		r.release.name = fmt.Sprint("app", i)
		s.model.putRecord(r)
	}
	first, second := s.reader.take(), s.reader.take()
	if len(first.GetRecords()) != maxBatch || len(second.GetRecords()) != 5 {
		t.Fatalf("got %d and %d", len(first.GetRecords()), len(second.GetRecords()))
	}
}
