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
