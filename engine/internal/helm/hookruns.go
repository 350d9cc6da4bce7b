package helm

import (
	"cmp"
	"slices"
	"time"

	rspb "helm.sh/helm/v4/pkg/release/v1"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// actionEvents are what hooks run for in an action, in their order.
var actionEvents = map[enginev1.RunRequest_Action][]rspb.HookEvent{
	enginev1.RunRequest_INSTALL:  {rspb.HookPreInstall, rspb.HookPostInstall},
	enginev1.RunRequest_UPGRADE:  {rspb.HookPreUpgrade, rspb.HookPostUpgrade},
	enginev1.RunRequest_ROLLBACK: {rspb.HookPreRollback, rspb.HookPostRollback},
}

// hookRuns are the hooks that an action has begun, with when it began each. A hook's own note tells only its last run,
// which a revision that is rolled back to brings along from another action.
type hookRuns struct {
	began time.Time
	of    map[*rspb.Hook][]time.Time
}

func newHookRuns() hookRuns {
	return hookRuns{began: time.Now(), of: map[*rspb.Hook][]time.Time{}}
}

// note looks for the hook about to run: Helm writes the record with it as running, once, before it makes its object.
func (h hookRuns) note(hooks []*rspb.Hook) {
	for _, hook := range hooks {
		if last := hook.LastRun; last.Phase == rspb.HookPhaseRunning && !last.StartedAt.Before(h.began) {
			h.of[hook] = append(h.of[hook], last.StartedAt)
		}
	}
}

func (a *run) hookResults() []*enginev1.HookResult { return a.hooks.results(a.request.GetAction()) }

// results tells how the hooks of that action ended, or that they run, in the order in which they began.
func (h hookRuns) results(action enginev1.RunRequest_Action) []*enginev1.HookResult {
	ran := make([]*rspb.Hook, 0, len(h.of))
	for hook := range h.of {
		ran = append(ran, hook)
	}
	slices.SortFunc(ran, func(a, b *rspb.Hook) int {
		return cmp.Or(h.of[a][0].Compare(h.of[b][0]), cmp.Compare(a.Name, b.Name))
	})
	var out []*enginev1.HookResult
	for _, hook := range ran {
		result := hookResult(hook)
		for _, event := range actionEvents[action] {
			// One that ran once of two events has had the first.
			if slices.Contains(hook.Events, event) && len(result.Events) < len(h.of[hook]) {
				result.Events = append(result.Events, string(event))
			}
		}
		if len(result.Events) > 0 {
			out = append(out, result)
		}
	}
	return out
}

func hookName(hook *rspb.Hook) string { return hook.Kind + " " + hook.Name }

func hookResult(hook *rspb.Hook) *enginev1.HookResult {
	last := hook.LastRun
	return &enginev1.HookResult{
		Hook: hookName(hook), Phase: string(last.Phase),
		StartedUnixMs: milliseconds(last.StartedAt), FinishedUnixMs: milliseconds(last.CompletedAt),
	}
}
