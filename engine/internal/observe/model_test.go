package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

// fakeHands notes what the model asks for.
type fakeHands struct {
	inventories map[int][]inventory.Ref // by revision: the tests have one release
	asked       []string
}

func (h *fakeHands) note(format string, args ...any) {
	h.asked = append(h.asked, fmt.Sprintf(format, args...))
}

func (h *fakeHands) known(_ releaseKey, revision int) ([]inventory.Ref, bool) {
	refs, ok := h.inventories[revision]
	return refs, ok
}
func (h *fakeHands) load(r *record)                        { h.note("load %d", r.revision) }
func (h *fakeHands) remember(r *record, _ []inventory.Ref) { h.note("remember %d", r.revision) }
func (h *fakeHands) forget(r *record)                      { h.note("forget %d", r.revision) }
func (h *fakeHands) watch(gvk schema.GroupVersionKind)     { h.note("watch %s", gvk.Kind) }
func (h *fakeHands) retry(gvk schema.GroupVersionKind)     { h.note("retry %s", gvk.Kind) }
func (h *fakeHands) unwatch(gvk schema.GroupVersionKind)   { h.note("unwatch %s", gvk.Kind) }
func (h *fakeHands) end(gvk schema.GroupVersionKind)       { h.note("end %s", gvk.Kind) }
func (h *fakeHands) check(gvk schema.GroupVersionKind, key objectKey, urgent bool) {
	h.note("check %s %s %v", gvk.Kind, key.name, urgent)
}

// scene is a model with one reader.
type scene struct {
	*testing.T
	hands  *fakeHands
	model  *model
	reader *Subscription
}

func newScene(t *testing.T) *scene {
	hands := &fakeHands{inventories: map[int][]inventory.Ref{}}
	m := newModel(hands)
	m.replaceRecords(nil)
	s := &scene{T: t, hands: hands, model: m, reader: m.subscribe()}
	s.told("reset synced")
	return s
}

func rec(revision int, status string) *record {
	return &record{
		release: releaseKey{"ns", "app"}, revision: revision, status: status, secret: recordPrefix + "app",
		uid: fmt.Sprint("uid", revision), secretState: status,
	}
}

var (
	configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	jobs       = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	current    = objectState{state: enginev1.ObjectState_CURRENT}
	failed     = objectState{state: enginev1.ObjectState_FAILED, message: "broken"}
)

func refs(names ...string) []inventory.Ref {
	var out []inventory.Ref
	for _, name := range names {
		if strings.HasPrefix(name, "job") {
			out = append(out, inventory.NewRef("batch/v1", "Job", "ns", name))
			continue
		}
		out = append(out, inventory.NewRef("v1", "ConfigMap", "ns", name))
	}
	return out
}

func key(name string) objectKey { return objectKey{"ns", name} }

// asked checks what the model asked for since the last time.
func (s *scene) asked(want ...string) {
	s.Helper()
	got := s.hands.asked
	s.hands.asked = nil
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Fatalf("asked for %q, want %q", got, want)
	}
}

// told checks what the reader is told since the last time, in short.
func (s *scene) told(want string) {
	s.Helper()
	var words []string
	if batch := s.reader.take(); batch != nil {
		words = short(batch)
	}
	if got := strings.Join(words, " "); got != want {
		s.Fatalf("told %q, want %q", got, want)
	}
}

func short(batch *enginev1.ObserveBatch) []string {
	var words []string
	for _, change := range batch.GetRecords() {
		status := change.GetRecord().GetStatus()
		if change.GetGone() {
			status = "gone"
		}
		words = append(words, fmt.Sprintf("r%d=%s", change.GetRecord().GetRevision(), status))
	}
	slices.Sort(words)
	if batch.GetReset_() {
		words = slices.Insert(words, 0, "reset")
	}
	if batch.GetRecordsSynced() {
		words = append(words, "synced")
	}
	for _, objects := range batch.GetObjects() {
		states := []string{}
		for _, one := range objects.GetStates() {
			states = append(states, one.GetRef().GetName()+":"+one.GetState().String())
		}
		slices.Sort(states)
		sign := "+"
		if objects.GetComplete() {
			sign = "="
		}
		words = append(words, fmt.Sprintf("o%d%s[%s]", objects.GetRevision(), sign, strings.Join(states, " ")))
	}
	if batch.GetFault() != nil {
		words = append(words, "fault")
	}
	if batch.GetRecovered() {
		words = append(words, "recovered")
	}
	return words
}

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
	s.model.replaceRecords([]*record{rec(1, "superseded"), rec(2, "deployed")})
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current, key("b"): current})
	s.told("r1=superseded r2=deployed o2=[a:CURRENT b:CURRENT]")
	s.hands.asked = nil
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current})
	s.asked("check ConfigMap b true")
	s.model.replaceRecords([]*record{rec(1, "superseded")})
	s.told("r2=gone o1=[a:CURRENT]")
}

func TestLateReaderGetsEverything(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a")
	s.model.putRecord(rec(1, "deployed"))
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): failed})
	s.model.fail("records", &enginev1.Fault{})
	s.told("r1=deployed o1=[a:FAILED] fault")
	s.reader = s.model.subscribe()
	s.told("reset r1=deployed synced o1=[a:FAILED] fault")
	s.model.fail("other", &enginev1.Fault{})
	s.model.work("records")
	s.told("")
	s.model.work("other")
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
