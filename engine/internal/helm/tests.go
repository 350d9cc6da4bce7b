package helm

import (
	"cmp"
	"slices"
	"time"

	"helm.sh/helm/v4/pkg/action"
	rspb "helm.sh/helm/v4/pkg/release/v1"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// test runs the tests of the deployed revision, and notes in its record when they ran and how they ended.
func (a *run) test() error {
	if _, err := a.deployed(int(a.request.GetRevision())); err != nil {
		return err
	}
	configuration, err := a.configuration()
	if err != nil {
		return err
	}
	// Helm writes the record it has read: somebody's upgrade meanwhile must not be undone by it.
	a.records.conditional = true
	verb := action.NewReleaseTesting(configuration)
	verb.Timeout = a.timeout()
	verb.Namespace = a.request.GetNamespace()
	began := time.Now()
	tested, shutdown, err := verb.Run(a.request.GetName())
	if rel, ok := tested.(*rspb.Release); ok {
		a.tests = testResults(rel.Hooks, began)
	}
	// Their delete policies; the logs of what failed have been read by then.
	if cleanup := shutdown(); err == nil {
		err = cleanup
	}
	return err
}

// testResults tells how tests ended, in Helm's order. Those after one that failed have only what an earlier run left.
func testResults(hooks []*rspb.Hook, began time.Time) []*enginev1.HookResult {
	var tests []*rspb.Hook
	for _, hook := range hooks {
		if slices.Contains(hook.Events, rspb.HookTest) {
			tests = append(tests, hook)
		}
	}
	slices.SortStableFunc(tests, func(a, b *rspb.Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Name, b.Name))
	})
	out := make([]*enginev1.HookResult, 0, len(tests))
	for _, hook := range tests {
		if hook.LastRun.StartedAt.Before(began) {
			out = append(out, &enginev1.HookResult{Hook: hookName(hook)})
			continue
		}
		out = append(out, hookResult(hook))
	}
	return out
}
