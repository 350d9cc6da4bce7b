//go:build live

package helm

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilothouse-dev/pilothouse/engine/internal/drift"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

func (l *live) compare(revision int32, refs ...*enginev1.Ref) []*enginev1.Comparison {
	l.Helper()
	reply, err := Compare(context.Background(), l.cluster, &enginev1.CompareRequest{
		Namespace: l.namespace, Name: "app", Revision: revision, Objects: refs,
	})
	if err != nil {
		l.Fatal(err)
	}
	return reply.GetObjects()
}

func (l *live) repair(revision int32, parts ...*enginev1.RepairRequest_Part) error {
	l.Helper()
	reply, err := l.runner.Repair(context.Background(), l.cluster, &enginev1.RepairRequest{
		Namespace: l.namespace, Name: "app", Revision: revision, Objects: parts,
	})
	for _, one := range reply.GetObjects() {
		if one.GetFault() != nil {
			l.Fatal(one.GetFault())
		}
	}
	return err
}

func (l *live) edit(patch string) {
	l.Helper()
	_, err := l.cluster.Clientset().CoreV1().ConfigMaps(l.namespace).Patch(context.Background(), "app", types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	if err != nil {
		l.Fatal(err)
	}
}

func (l *live) message() (string, string) {
	l.Helper()
	live, err := l.cluster.Clientset().CoreV1().ConfigMaps(l.namespace).Get(context.Background(), "app", metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	return live.Data["message"], live.ResourceVersion
}

func TestLiveDrift(t *testing.T) {
	l := newLive(t, true)
	digest := l.put(tiny(t))
	var told []map[inventory.Ref]drift.Trace
	l.Cleanup(l.cluster.Inventories.Listen(inventory.Listener{
		Put:     func(string, string, int) {},
		Applied: func(_, _ string, _ int, traces map[inventory.Ref]drift.Trace) { told = append(told, traces) },
	}))
	out := l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: digest})
	if len(told) != 1 || len(told[0]) != 4 {
		t.Fatalf("an install tells how its objects were applied: %v", told)
	}
	configMap := out.GetInventory()[slices.IndexFunc(out.GetInventory(), func(r *enginev1.Ref) bool { return r.GetKind() == "ConfigMap" })]
	ref := refOf(configMap)
	_, version := l.message()
	for _, one := range l.compare(1, out.GetInventory()...) {
		if one.GetFault() != nil || one.GetMissing() || len(one.GetDifferences()) > 0 {
			t.Errorf("what was just applied differs: %v", one)
		}
	}
	if len(told) != 2 || told[1][ref].Own != told[0][ref].Own {
		t.Error("what is equal is remembered as applied")
	}
	if _, now := l.message(); now != version {
		t.Error("a comparison wrote")
	}

	if all := l.compare(1); len(all) != len(out.GetInventory()) {
		t.Errorf("asked for no object in particular: %v", all)
	}

	l.edit(`{"data":{"message":"theirs","extra":"kept"}}`)
	_, version = l.message()
	l.asked()
	one := l.compare(1, configMap)[0]
	asked := l.asked()
	t.Logf("compare: %s", strings.Join(asked, ", "))
	if len(asked) != 4 {
		t.Error("a comparison makes 3 GET (one of the record) and 1 PATCH")
	}
	if len(one.GetDifferences()) != 1 || one.GetDifferences()[0].GetPath() != "/data/message" || one.GetDifferences()[0].GetManager() != "somebody" {
		t.Errorf("%v", one)
	}
	if message, now := l.message(); now != version || message != "theirs" {
		t.Error("a comparison wrote")
	}
	if err := l.repair(1, &enginev1.RepairRequest_Part{Ref: configMap}); err != nil {
		t.Fatal(err)
	}
	if message, _ := l.message(); message != "hello" || told[len(told)-1][ref].Own != told[0][ref].Own {
		t.Errorf("%q, or the field is not Helm's again", message)
	}

	l.edit(`{"data":{"message":"theirs"}}`)
	l.edit(`{"data":{"message":"hello"}}`)
	before := len(told)
	if one := l.compare(1, configMap)[0]; len(one.GetDifferences()) != 0 || len(told) != before {
		t.Error("equal by chance is not as applied: the field is somebody's now")
	}
	if err := l.cluster.Clientset().CoreV1().ConfigMaps(l.namespace).Delete(context.Background(), "app", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if one := l.compare(1, configMap)[0]; !one.GetMissing() || one.GetExpires() {
		t.Errorf("%v", one)
	}
	if err := l.repair(2, &enginev1.RepairRequest_Part{Ref: configMap}); err == nil || !strings.Contains(err.Error(), "is not the deployed one any more") {
		t.Errorf("repaired from a revision that is not deployed: %v", err)
	}
	if err := l.repair(1, &enginev1.RepairRequest_Part{Ref: configMap}); err != nil {
		t.Fatal(err)
	}
	if message, _ := l.message(); message != "hello" {
		t.Errorf("%q", message)
	}
}
