package helm

import (
	"fmt"
	"testing"
	"time"

	rspb "helm.sh/helm/v4/pkg/release/v1"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

func TestHooksThatRanAreToldWithWhatTheyRanFor(t *testing.T) {
	runs := newHookRuns()
	hook := func(name string, events ...rspb.HookEvent) *rspb.Hook {
		return &rspb.Hook{Name: name, Kind: "Job", Events: events}
	}
	twice := hook("twice", rspb.HookPostUpgrade, rspb.HookPreUpgrade, rspb.HookPreInstall)
	fails := hook("fails", rspb.HookPreUpgrade, rspb.HookPostUpgrade)
	old := hook("old", rspb.HookPreUpgrade)
	old.LastRun = rspb.HookExecution{StartedAt: runs.began.Add(-time.Hour), Phase: rspb.HookPhaseRunning}
	hooks := []*rspb.Hook{hook("idle", rspb.HookPostUpgrade), fails, twice, old}
	// As Helm does it: a record of what begins, then the end in memory.
	execute := func(one *rspb.Hook, second int, phase rspb.HookPhase) {
		one.LastRun = rspb.HookExecution{StartedAt: runs.began.Add(time.Duration(second) * time.Second), Phase: rspb.HookPhaseRunning}
		runs.note(hooks)
		one.LastRun.Phase, one.LastRun.CompletedAt = phase, one.LastRun.StartedAt.Add(time.Second)
		runs.note(hooks)
	}
	execute(twice, 1, rspb.HookPhaseSucceeded)
	execute(twice, 3, rspb.HookPhaseSucceeded)
	execute(fails, 2, rspb.HookPhaseFailed)
	var told []string
	for _, one := range runs.results(enginev1.RunRequest_UPGRADE) {
		seconds := (one.GetStartedUnixMs() - runs.began.UnixMilli()) / 1000
		took := one.GetFinishedUnixMs() - one.GetStartedUnixMs()
		told = append(told, fmt.Sprint(one.GetHook(), one.GetEvents(), one.GetPhase(), seconds, took))
	}
	want := `["Job twice[pre-upgrade post-upgrade]Succeeded3 1000" "Job fails[pre-upgrade]Failed2 1000"]`
	if got := fmt.Sprintf("%q", told); got != want {
		t.Errorf("%s instead of %s", got, want)
	}
	if got := runs.results(enginev1.RunRequest_TEST); got != nil {
		t.Errorf("tests are told of elsewhere: %v", got)
	}
}
