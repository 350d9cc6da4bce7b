package observe

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// Whole, such a Deployment is 4 KiB.
const watched, perRelease, most = 20_000, 10, 1024

func TestAnObjectCostsAtMostAKibibyte(t *testing.T) {
	spec := strings.Repeat(`{"name": "VARIABLE", "value": "some value of no interest"},`, 60)
	before := heap()
	hands := &fakeHands{inventories: map[int][]inventory.Ref{}}
	m := newModel(hands)
	m.scalersSeen("", true)
	objects := make([]any, 0, watched)
	for i := range watched {
		name := fmt.Sprintf("workload-with-a-long-name-%d", i)
		data := fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": %q, "namespace": "ns", "generation": 1},
			"spec": {"env": [%s{}]}, "status": {"observedGeneration": 1}}`, name, spec)
		state, err := viewer{}.compute([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, &stateObject{Head: raw.Head{Namespace: "ns", Name: name}, state: state})
	}
	for i := range watched / perRelease {
		refs := make([]inventory.Ref, perRelease)
		for j := range refs {
			refs[j] = inventory.NewRef("apps/v1", "Deployment", "ns", fmt.Sprintf("workload-with-a-long-name-%d", i*perRelease+j))
		}
		r := rec(1, "deployed")
		r.release.name = fmt.Sprint("app", i)
		m.attentions[r.release] = &attention{said: &enginev1.Attention{}}
		m.putRecord(r)
		m.setInventory(r, refs, "")
	}
	if err := (&stateStore{m, deployments}).Replace(objects, ""); err != nil {
		t.Fatal(err)
	}
	objects, hands.asked = nil, nil
	each := (heap() - before) / watched
	t.Logf("%d bytes per object", each)
	if each > most {
		t.Errorf("an object costs %d bytes, want at most %d", each, most)
	}
	runtime.KeepAlive(m)
	runtime.KeepAlive(objects)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
