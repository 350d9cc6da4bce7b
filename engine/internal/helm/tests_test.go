package helm

import (
	"testing"
	"time"

	rspb "helm.sh/helm/v4/pkg/release/v1"
)

func TestResultsAreThoseOfThisRun(t *testing.T) {
	began := time.Now()
	hook := func(name string, weight int, event rspb.HookEvent, started time.Time, phase rspb.HookPhase) *rspb.Hook {
		return &rspb.Hook{
			Name: name, Kind: "Pod", Weight: weight, Events: []rspb.HookEvent{event},
			LastRun: rspb.HookExecution{StartedAt: started, CompletedAt: started.Add(time.Second), Phase: phase},
		}
	}
	got := testResults([]*rspb.Hook{
		hook("late", 2, rspb.HookTest, began.Add(-time.Hour), rspb.HookPhaseSucceeded),
		hook("failed", 1, rspb.HookTest, began.Add(time.Second), rspb.HookPhaseFailed),
		hook("migrate", 0, rspb.HookPreInstall, began.Add(time.Second), rspb.HookPhaseSucceeded),
		hook("early", 1, rspb.HookTest, began, rspb.HookPhaseSucceeded),
	}, began)
	want := []struct{ hook, phase string }{{"Pod early", "Succeeded"}, {"Pod failed", "Failed"}, {"Pod late", ""}}
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i, one := range want {
		if got[i].GetHook() != one.hook || got[i].GetPhase() != one.phase || (got[i].GetStartedUnixMs() == 0) != (one.phase == "") {
			t.Errorf("%v instead of %v", got[i], one)
		}
	}
}
