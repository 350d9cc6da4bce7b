package observe

import (
	"testing"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

func (state objectState) with(label label) objectState {
	state.label = label
	return state
}

func named(kind watchKey, name string) watchKey {
	return watchKey{GroupVersionKind: kind.GroupVersionKind, namespace: "ns", name: name, own: true}
}

// strayed is a release whose `a` has lost its label, and whose `b` has it.
func strayed(t *testing.T) (*scene, watchKey) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a", "b")
	s.model.putRecord(rec(1, "deployed"))
	labelled := current.with(labelThere)
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): labelled, key("b"): labelled})
	s.told("r1=deployed o1=[a:CURRENT b:CURRENT]")
	s.asked("watch ConfigMap", "remember 1")
	s.model.dropObject(configMaps, key("a"))
	s.asked("check ConfigMap a true")
	s.model.checked(configMaps, key("a"), current.with(labelLost))
	s.asked("watch ConfigMap in ns named a")
	s.told("")
	return s, named(configMaps, "a")
}

func TestAnObjectThatLostItsLabelIsWatchedByName(t *testing.T) {
	s, at := strayed(t)
	s.model.replaceObjects(at, map[objectKey]objectState{key("a"): current.with(labelLost)})
	s.told("")
	s.model.putObject(at, key("a"), failed.with(labelLost))
	s.told("o1+[a:FAILED]")
	s.model.dropObject(at, key("a"))
	s.told("o1+[a:NOT_FOUND]")
	s.asked() // no label is asked for, so what is not shown is not there
	s.model.putObject(at, key("a"), current.with(labelLost))
	s.told("o1+[a:CURRENT]")

	s.model.putObject(at, key("a"), failed.with(labelThere))
	s.asked("unwatch ConfigMap in ns named a", "check ConfigMap a false") // should its kind's watch not show it soon
	s.told("o1+[a:FAILED]")
	s.model.putObject(configMaps, key("a"), current.with(labelThere))
	s.told("o1+[a:CURRENT]")
	s.model.retire(at)
	s.asked("end ConfigMap in ns named a")
	s.model.dropObject(configMaps, key("a"))
	s.asked("check ConfigMap a true") // as ever
}

func TestAnObjectThatGoesWhileItIsFollowedIsGone(t *testing.T) {
	s, at := strayed(t)
	s.model.replaceObjects(at, nil)
	s.told("o1+[a:NOT_FOUND]")
	s.model.putRecord(rec(1, "uninstalling"))
	s.model.dropRecord(rec(1, "uninstalling"))
	s.asked("forget 1", "unwatch ConfigMap", "unwatch ConfigMap in ns named a")
}

func TestTheOnlyObjectOfItsKindMayLoseItsLabel(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a", "job")
	s.model.putRecord(rec(1, "deployed"))
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current})
	s.model.replaceObjects(jobs, nil)
	s.hands.asked = nil
	s.model.checked(jobs, key("job"), current.with(labelLost))
	s.asked("watch Job in ns named job", "unwatch Job")
	s.told("r1=deployed o1=[a:CURRENT job:CURRENT]")
	s.model.retire(jobs)
	s.asked("end Job")
	s.model.putObject(named(jobs, "job"), key("job"), current.with(labelThere))
	s.asked("watch Job", "unwatch Job in ns named job")
	s.model.replaceObjects(jobs, nil)
	s.asked("check Job job false") // gone between the two
	s.model.checked(jobs, key("job"), notFound)
	s.told("o1+[job:NOT_FOUND]")
}

func TestWhatIsReadAnywayNeedsNoWatchOfItsOwn(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a")
	s.model.putRecord(rec(1, "deployed"))
	s.model.blind(configMaps, false)
	s.hands.asked = nil
	s.model.checked(configMaps, key("a"), current.with(labelLost))
	s.asked()
	s.told("r1=deployed o1=[a:CURRENT] POLL")
}

func TestAWatchByNameThatIsNotAllowedIsAPoll(t *testing.T) {
	s, at := strayed(t)
	s.model.blind(at, false)
	s.asked("check ConfigMap in ns named a a true")
	s.told("o1=[a:CURRENT b:CURRENT] POLL")
	s.model.checked(at, key("a"), failed.with(labelLost))
	s.told("o1+[a:FAILED]")
	s.model.lookAgain(at)
	s.asked("check ConfigMap in ns named a a true")
	s.model.checked(at, key("a"), current.with(labelThere))
	s.asked("unwatch ConfigMap in ns named a", "check ConfigMap a false")
}

func TestAnotherJudgeReadsWhatIsWatchedByName(t *testing.T) {
	s, at := strayed(t)
	s.attend(checked("true", ""))
	s.asked("check ConfigMap b true", "check ConfigMap in ns named a a true") // its watch has not begun
	s.model.replaceObjects(at, map[objectKey]objectState{key("a"): current.with(labelLost)})
	s.hands.asked = nil // it is seen by metadata alone, so the read is still needed
	judged := objectState{state: enginev1.ObjectState_FAILED, by: s.model.judgeAt(at, key("a")), label: labelLost}
	s.model.checked(at, key("a"), judged)
	s.asked()
	s.told("o1=[a:FAILED b:CURRENT] by t")
}

func TestPodsSpeakForAWorkloadWithoutTheLabel(t *testing.T) {
	s := newScene(t)
	s.model.scalersSeen("", true)
	s.hands.inventories[1] = []inventory.Ref{inventory.NewRef("apps/v1", "Deployment", "ns", "web")}
	s.model.putRecord(rec(1, "deployed"))
	s.model.replaceObjects(deployments, nil)
	busy := objectState{state: enginev1.ObjectState_IN_PROGRESS, label: labelLost}
	s.model.checked(deployments, key("web"), busy)
	s.told("r1=deployed o1=[web:IN_PROGRESS]")
	s.model.putPod(workload{deployments.GroupKind(), key("web")}, "web-1", "CrashLoopBackOff")
	s.told("o1+[web:IN_PROGRESS]")
}

func TestLookFindsTheLabel(t *testing.T) {
	for text, want := range map[string]label{
		`{"metadata": {"name": "a", "labels": {"app.kubernetes.io/managed-by": "Helm"}}}`:  labelThere,
		`{"metadata": {"name": "a", "labels": {"app.kubernetes.io/managed-by": "other"}}}`: labelLost,
		`{"metadata": {"name": "a"}}`: labelLost,
	} {
		head, data, err := raw.Strip([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		state := objectState{}
		state.look(&head, data, true)
		if state.label != want {
			t.Errorf("%s: got %v, want %v", text, state.label, want)
		}
	}
}
