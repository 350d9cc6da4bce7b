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
	applied     map[int][]uint64
	asked       []string
}

func (h *fakeHands) note(format string, args ...any) {
	h.asked = append(h.asked, fmt.Sprintf(format, args...))
}

func (h *fakeHands) known(_ releaseKey, revision int) ([]inventory.Ref, bool) {
	refs, ok := h.inventories[revision]
	return refs, ok
}
func (h *fakeHands) traces(_ releaseKey, revision int) []uint64 { return h.applied[revision] }
func (h *fakeHands) load(r *record)                             { h.note("load %d", r.revision) }
func (h *fakeHands) remember(r *record, _ []inventory.Ref)      { h.note("remember %d", r.revision) }
func (h *fakeHands) forget(r *record)                           { h.note("forget %d", r.revision) }
func (h *fakeHands) watch(at watchKey)                          { h.note("watch %s", where(at)) }
func (h *fakeHands) retry(at watchKey)                          { h.note("retry %s", where(at)) }
func (h *fakeHands) unwatch(at watchKey)                        { h.note("unwatch %s", where(at)) }
func (h *fakeHands) end(at watchKey)                            { h.note("end %s", where(at)) }
func (h *fakeHands) records(namespace string, on bool)          { h.note("records %s %v", namespace, on) }
func (h *fakeHands) pods(namespace string, on bool)             { h.note("pods %s %v", namespace, on) }
func (h *fakeHands) scalers(namespace string)                   { h.note("scalers %s", namespace) }
func (h *fakeHands) check(at watchKey, key objectKey, urgent bool) {
	h.note("check %s %s %v", where(at), key.name, urgent)
}

// where is a watch in short: its kind, and how it is narrowed.
func where(at watchKey) string {
	out := at.Kind
	if at.namespace != "" {
		out += " in " + at.namespace
	}
	if at.name != "" {
		out += " named " + at.name
	}
	if at.crowd() {
		out += " for a crowd"
	}
	return out
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
	m.replaceRecords("", nil)
	s := &scene{T: t, hands: hands, model: m, reader: m.subscribe()}
	s.told("reset synced")
	s.attend(&enginev1.Attention{})
	return s
}

// deploy has the release consist of one Deployment that can be scaled.
func (s *scene) deploy() {
	s.hands.inventories[1] = []inventory.Ref{inventory.NewRef("apps/v1", "Deployment", "ns", "web")}
	s.model.putRecord(rec(1, "deployed"))
	s.model.scale(deployments)
}

func rec(revision int, status string) *record {
	return &record{
		release: releaseKey{"ns", "app"}, revision: revision, status: status, secret: recordPrefix + "app",
		uid: fmt.Sprint("uid", revision), secretState: status,
	}
}

var (
	configMaps  = watchOf("", "v1", "ConfigMap")
	deployments = watchOf("apps", "v1", "Deployment")
	jobs        = watchOf("batch", "v1", "Job")
	current     = objectState{state: enginev1.ObjectState_CURRENT}
	failed      = objectState{state: enginev1.ObjectState_FAILED, message: "broken"}
)

func watchOf(group, version, kind string) watchKey {
	return watchKey{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}}
}

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

// web is the Deployment of a release that has one.
var web = workload{deployments.GroupKind(), key("web")}

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

// extras is what a release's objects come with, where it is not the usual.
func extras(objects *enginev1.ReleaseObjects) string {
	out := ""
	for _, one := range objects.GetExternal() {
		out += " " + one.GetRef().GetKind() + "/" + one.GetRef().GetName() + ":" + one.GetState().String()
	}
	if mode := objects.GetWatch(); mode != enginev1.WatchMode_CLUSTER {
		out += " " + mode.String()
	}
	if token := objects.GetToken(); token != "" {
		out += " by " + token
	}
	return out
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
		words = append(words, fmt.Sprintf("o%d%s[%s]%s", objects.GetRevision(), sign, strings.Join(states, " "), extras(objects)))
	}
	for _, one := range batch.GetNamespaces() {
		words = append(words, fmt.Sprintf("n/%s=%v", one.GetNamespace(), one.GetSynced()))
		if one.GetFault() != nil {
			words = append(words, "fault")
		}
	}
	if batch.GetFault() != nil {
		words = append(words, "fault")
	}
	if batch.GetRecovered() {
		words = append(words, "recovered")
	}
	return words
}
