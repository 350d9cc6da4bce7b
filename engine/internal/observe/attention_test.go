package observe

import (
	"strings"
	"testing"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

func (s *scene) attend(said *enginev1.Attention) {
	if said.Namespace == "" {
		said.Namespace, said.Name = "ns", "app"
	}
	s.reader.Attend([]*enginev1.Attention{said})
}

func checked(current, failed string) *enginev1.Attention {
	return &enginev1.Attention{Token: "t", HealthChecks: []*enginev1.HealthCheck{{
		Origin: "spec.healthChecks[0]", ApiVersion: "v1", Kind: "ConfigMap", Current: current, Failed: failed,
	}}}
}

func TestWhatWasJudgedOtherwiseIsReadAgain(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a", "job")
	s.model.putRecord(rec(1, "deployed"))
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current})
	s.model.replaceObjects(jobs, map[objectKey]objectState{key("job"): current})
	s.told("r1=deployed o1=[a:CURRENT job:CURRENT]")
	s.asked("watch ConfigMap", "watch Job", "remember 1")

	s.attend(checked("true", ""))
	s.asked("check ConfigMap a true")
	s.told("o1=[a:CURRENT job:CURRENT] by t")
	judge := s.model.judgeAt(configMaps, key("a"))
	if judge == nil || s.model.judgeAt(jobs, key("job")) != nil {
		t.Fatal("a health check judges the kind it names, and no other")
	}
	judged := objectState{state: enginev1.ObjectState_FAILED, by: judge}
	s.model.checked(configMaps, key("a"), judged)
	s.told("o1+[a:FAILED]")
	s.attend(checked("true", ""))
	s.asked() // nothing new was said
	s.model.putObject(configMaps, key("a"), current)
	s.asked("check ConfigMap a true") // seen by metadata alone, so it must be read
	s.told("")

	s.attend(&enginev1.Attention{})
	s.asked("check ConfigMap a true")
	s.model.checked(configMaps, key("a"), failed)
	s.told("o1=[a:FAILED job:CURRENT]")
	if s.model.judgeAt(configMaps, key("a")) != nil {
		t.Fatal("a forgotten check judges nothing")
	}
}

func TestExternalObjects(t *testing.T) {
	s := newScene(t)
	s.attend(&enginev1.Attention{Token: "t", External: []*enginev1.Ref{{ApiVersion: "batch/v1", Kind: "Job", Namespace: "else", Name: "job"}}})
	s.hands.inventories[1] = refs("a")
	s.model.putRecord(rec(1, "deployed"))
	s.asked("watch ConfigMap", "watch Job in else named job", "remember 1")
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current})
	s.told("r1=deployed")
	external := watchKey{GroupVersionKind: jobs.GroupVersionKind, namespace: "else", name: "job"}
	s.model.replaceObjects(external, nil)
	s.asked() // no label is asked for, so what is not shown is not there
	s.told("o1=[a:CURRENT] Job/job:NOT_FOUND by t")
	s.model.putObject(external, objectKey{"else", "job"}, current)
	s.told("o1=[a:CURRENT] Job/job:CURRENT by t")
	s.model.dropObject(external, objectKey{"else", "job"})
	s.told("o1=[a:CURRENT] Job/job:NOT_FOUND by t")
	s.attend(&enginev1.Attention{})
	s.told("o1=[a:CURRENT]")
	s.asked("unwatch Job in else named job")
}

func TestAttentionsEndWithTheirStream(t *testing.T) {
	s := newScene(t)
	s.attend(checked("true", ""))
	s.model.unsubscribe(s.reader)
	s.attend(checked("false", ""))
	if len(s.model.attentions) != 0 {
		t.Fatal("a stream that has ended is still listened to")
	}
}

func TestKindsAreNarrowed(t *testing.T) {
	s := newScene(t)
	s.hands.inventories[1] = refs("a")
	s.model.putRecord(rec(1, "deployed"))
	s.asked("watch ConfigMap", "remember 1")
	s.model.narrow(configMaps)
	s.asked("end ConfigMap", "watch ConfigMap in ns")
	here := configMaps
	here.namespace = "ns"
	s.model.replaceObjects(here, map[objectKey]objectState{key("a"): current})
	s.told("r1=deployed o1=[a:CURRENT] NAMESPACE")
	s.model.blind(here, false)
	s.asked("check ConfigMap in ns a true")
	s.told("o1=[a:CURRENT] POLL")
	s.model.checked(here, key("a"), failed)
	s.told("o1+[a:FAILED]")
	s.model.lookAgain(here)
	s.asked("check ConfigMap in ns a true")
	s.model.checked(here, key("a"), current)
	s.told("o1+[a:CURRENT]")
}

func TestRecordsByNamespace(t *testing.T) {
	s := newScene(t)
	s.model.putRecord(rec(1, "deployed"))
	s.told("r1=deployed")
	s.attend(&enginev1.Attention{})
	s.hands.asked = nil
	s.model.narrowRecords()
	s.told("reset r1=gone") // a list may have shown it, but nobody would see it change
	s.asked("forget 1", "records ns true")
	s.model.replaceRecords("ns", []*record{rec(2, "deployed")})
	s.told("r2=deployed n/ns=true")
	s.model.failSpace("ns", &enginev1.Fault{})
	s.told("n/ns=true fault")
	s.model.workSpace("ns")
	s.told("n/ns=true")
	s.model.workSpace("ns")
	s.told("")
	s.hands.asked = nil
	s.attend(&enginev1.Attention{Namespace: "other", Name: "app"})
	s.asked("records other true")
	s.attend(&enginev1.Attention{Gone: true})
	s.asked("records ns false", "forget 2")
	s.told("r2=gone")
}

func TestPodsTellWhyAWorkloadIsNotCurrent(t *testing.T) {
	s := newScene(t)
	s.model.scalersSeen("", true)
	s.deploy()
	s.model.replaceObjects(deployments, map[objectKey]objectState{key("web"): current})
	s.asked("watch Deployment", "scalers ns", "remember 1")
	s.told("r1=deployed o1=[web:CURRENT]")
	busy := objectState{state: enginev1.ObjectState_IN_PROGRESS, message: "Available: 0/1"}
	s.model.putObject(deployments, key("web"), busy)
	s.asked("pods ns true")
	s.told("o1+[web:IN_PROGRESS]")
	s.model.putPod(web, "web-2", "CrashLoopBackOff")
	s.model.putPod(web, "web-1", "ImagePullBackOff: no such image")
	batch := s.reader.take()
	if got := batch.GetObjects()[0].GetStates()[0].GetMessage(); got != "pod web-1 ImagePullBackOff: no such image" {
		t.Fatalf("got %q", got)
	}
	s.model.putPod(web, "web-2", "CrashLoopBackOff again")
	s.told("") // another one speaks
	s.model.putPod(web, "web-1", "")
	s.told("o1+[web:IN_PROGRESS]")
	s.model.putObject(deployments, key("web"), current)
	s.asked("pods ns false")
	s.told("o1+[web:CURRENT]")
	s.model.forgetPods("ns")
	if len(s.model.pods) != 0 {
		t.Fatal("pods are kept that nobody looks at")
	}
}

func TestAutoscalersOfOthers(t *testing.T) {
	s := newScene(t)
	s.deploy()
	s.model.replaceObjects(deployments, map[objectKey]objectState{key("web"): current})
	s.told("r1=deployed") // whether it is scaled is not known yet
	s.model.putScaler(web, "hpa", current)
	s.model.scalersSeen("", true)
	s.told("o1=[web:CURRENT] HorizontalPodAutoscaler/hpa:CURRENT")
	s.model.putScaler(web, "hpa", current)
	s.told("")
	s.model.putScaler(web, "hpa", failed)
	s.told("o1=[web:CURRENT] HorizontalPodAutoscaler/hpa:FAILED")
	s.model.putScaler(workload{deployments.GroupKind(), key("other")}, "hpa", failed)
	s.told("o1=[web:CURRENT]")
	s.model.putScaler(web, "hpa", current)
	s.model.keepScalers("", map[objectKey]bool{})
	s.told("o1=[web:CURRENT]")
}

func TestHealthChecks(t *testing.T) {
	object := `{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "generation": 2},
		"status": {"phase": "PHASE", "observedGeneration": GENERATION}}`
	for _, one := range []struct {
		current, failed, phase, generation string
		state                              enginev1.ObjectState_State
		message                            string
	}{
		{`status.phase == "Up"`, "", "Up", "2", enginev1.ObjectState_CURRENT, ""},
		{`status.phase == "Up"`, "", "Up", "1", enginev1.ObjectState_IN_PROGRESS, "newest spec"},
		{`status.phase == "Up"`, "", "Down", "2", enginev1.ObjectState_IN_PROGRESS, "spec.healthChecks[0].current is false"},
		{`status.phase == "Up"`, `status.phase == "Down"`, "Down", "2", enginev1.ObjectState_FAILED, "spec.healthChecks[0].failed is true"},
		{"", `status.phase == "Down"`, "Up", "2", enginev1.ObjectState_CURRENT, ""},
		{`status.health == "Up"`, "", "Up", "2", enginev1.ObjectState_IN_PROGRESS, "no such key: health"},
		{`status.`, "", "Up", "2", enginev1.ObjectState_UNKNOWN, "spec.healthChecks[0].current: "},
	} {
		judge := newJudge(checked(one.current, one.failed).GetHealthChecks()[0])
		data := strings.NewReplacer("PHASE", one.phase, "GENERATION", one.generation).Replace(object)
		state, err := viewer{by: judge}.compute([]byte(data))
		if err != nil || state.state != one.state || !strings.Contains(state.message, one.message) || state.by != judge {
			t.Errorf("%+v: got %v %q, %v", one, state.state, state.message, err)
		}
	}
}

func TestConditionsOfForeignObjects(t *testing.T) {
	object := `{"apiVersion": "v1", "kind": "Canary", "metadata": {"name": "a"},
		"status": {"conditions": [{"type": "TYPE", "status": "STATUS", "reason": "REASON", "message": "it is so"}]}}`
	for _, one := range []struct {
		kind, status, reason string
		state                enginev1.ObjectState_State
	}{
		{"Promoted", "True", "Succeeded", enginev1.ObjectState_CURRENT},
		{"Promoted", "False", "Failed", enginev1.ObjectState_IN_PROGRESS},
		{"ScalingActive", "False", "FailedGetResourceMetric", enginev1.ObjectState_IN_PROGRESS},
		{"ScalingActive", "False", "ScalingDisabled", enginev1.ObjectState_CURRENT},
		{"Whatever", "False", "Never", enginev1.ObjectState_CURRENT},
	} {
		data := strings.NewReplacer("TYPE", one.kind, "STATUS", one.status, "REASON", one.reason).Replace(object)
		state, err := viewer{foreign: true}.compute([]byte(data))
		if err != nil || state.state != one.state {
			t.Errorf("%+v: got %v %q, %v", one, state.state, state.message, err)
		}
	}
}

func TestObjectsWithoutARelease(t *testing.T) {
	s := newScene(t)
	alone := &enginev1.Attention{
		Name: "d", Alone: true, Token: "t",
		External: []*enginev1.Ref{{ApiVersion: "batch/v1", Kind: "Job", Namespace: "else", Name: "job"}},
	}
	s.reader.Attend([]*enginev1.Attention{alone})
	s.asked("watch Job in else named job")
	at := watchKey{GroupVersionKind: jobs.GroupVersionKind, namespace: "else", name: "job"}
	s.model.replaceObjects(at, nil)
	state := func() string {
		batch := s.reader.take()
		if batch == nil || len(batch.Objects) != 1 || len(batch.Objects[0].External) != 1 {
			t.Fatalf("not one object: %v", batch)
		}
		told := batch.Objects[0]
		if told.Namespace != "" || told.Name != "d" || told.Token != "t" || !told.Complete {
			t.Fatalf("not told of what was asked: %v", told)
		}
		return told.External[0].State.String()
	}
	if got := state(); got != "NOT_FOUND" {
		t.Fatal(got)
	}
	job := objectKey{"else", "job"}
	s.model.putObject(at, job, current)
	if got := state(); got != "CURRENT" {
		t.Fatal(got)
	}
	s.model.replaceRecords("", []*record{rec(1, "uninstalled")}) // records come and go beside it
	s.model.replaceRecords("", nil)
	s.reader.take()
	s.model.dropObject(at, job)
	if got := state(); got != "NOT_FOUND" {
		t.Fatal(got)
	}
	s.hands.asked = nil
	s.reader.Attend([]*enginev1.Attention{{Name: "d", Gone: true}})
	s.asked("unwatch Job in else named job")
	if len(s.model.releases) != 0 {
		t.Fatal("nothing is left of it")
	}
}

func TestWhatNobodyLooksAfterIsNotRead(t *testing.T) {
	s := newScene(t)
	s.attend(&enginev1.Attention{Gone: true})
	s.model.putRecord(rec(1, "deployed"))
	s.told("r1=deployed") // its record is known all the same
	s.asked()
	s.attend(&enginev1.Attention{})
	s.asked("load 1")
	s.model.setInventory(rec(1, "deployed"), refs("a"), "")
	s.asked("watch ConfigMap", "remember 1")
	s.model.replaceObjects(configMaps, map[objectKey]objectState{key("a"): current})
	s.told("o1=[a:CURRENT]")
	s.attend(&enginev1.Attention{Gone: true})
	s.asked("unwatch ConfigMap")
	s.model.setInventory(rec(1, "deployed"), refs("a"), "") // read before that, and late
	s.asked()
	s.told("")
}
