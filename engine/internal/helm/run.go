package helm

import (
	"context"
	"fmt"
	"sync"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	rspb "helm.sh/helm/v4/pkg/release/v1"

	"github.com/pilothouse-dev/pilothouse/engine/internal/chart"
	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

// fieldManager is the one name under which `helm` and this engine write fields. By default it would be the
// program's file name, and a release handed from one to the other would conflict with itself; see handover.go for
// those that were applied so.
const fieldManager = "helm"

func init() { kube.ManagedFieldsManager = fieldManager }

// Progress is told in which phase an action is, and which hooks have begun.
type Progress func(*enginev1.Progress)

// Runner runs actions, one at a time per release.
type Runner struct {
	Charts *chart.Store

	mutex sync.Mutex
	busy  map[claim]*holder
}

// holder is the action that has a release.
type holder struct {
	caller context.Context
	done   chan struct{}
}

// claim names a Helm release, whoever asks for it: handles differ by identity, the server does not.
type claim struct{ server, namespace, name string }

// NewRunner makes a runner that takes its charts from that store.
func NewRunner(charts *chart.Store) *Runner {
	return &Runner{Charts: charts, busy: map[claim]*holder{}}
}

// run is one action under way.
type run struct {
	cluster *cluster.Cluster
	request *enginev1.RunRequest
	charts  *chart.Store
	records *records
	kube    *kubeClient
	// waits ends when the caller leaves. Nothing but waits may use it: a write that was begun is finished.
	waits context.Context
	// rehearsal makes every write of an object a dry run.
	rehearsal bool
	progress  *phases
	notes     string
	logs      []*enginev1.HookLog
	tests     []*enginev1.HookResult
	hooks     hookRuns
}

// Run does what the request asks and returns when Helm has: cancelling ctx ends waits, never an apply. The error
// is for requests that could not start; a failed action is an outcome with a fault.
func (r *Runner) Run(ctx context.Context, c *cluster.Cluster, request *enginev1.RunRequest, progress Progress) (*enginev1.Outcome, error) {
	if request.GetName() == "" || request.GetNamespace() == "" {
		return nil, fault.New(enginev1.Fault_INVALID, "a release needs a name and a namespace")
	}
	act, err := verb(request.GetAction())
	if err != nil {
		return nil, err
	}
	if request.GetAction() == enginev1.RunRequest_INSTALL || request.GetAction() == enginev1.RunRequest_UPGRADE {
		// Known before anything starts: a chart that left the cache is the caller's to resolve again.
		if _, err := r.Charts.Describe(request.GetChartDigest()); err != nil {
			return nil, err
		}
	}
	key := claim{c.Server, request.GetNamespace(), request.GetName()}
	if !r.take(ctx, key) {
		return &enginev1.Outcome{Fault: fault.New(enginev1.Fault_BUSY,
			"another action on release %s/%s is under way", key.namespace, key.name).Proto()}, nil
	}
	defer r.free(key)
	a := newRun(ctx, c, request, r.Charts, progress)
	a.progress.say(enginev1.Progress_PREPARING, "")
	return a.finish(a.guard(act)), nil
}

func newRun(ctx context.Context, c *cluster.Cluster, request *enginev1.RunRequest, charts *chart.Store, progress Progress) *run {
	a := &run{cluster: c, request: request, charts: charts, waits: ctx, hooks: newHookRuns()}
	a.progress = &phases{report: progress, hooks: a.hookResults}
	a.records = newRecords(a)
	a.kube = newKubeClient(a)
	a.records.beforeCreate = func(rel *rspb.Release) error {
		if err := a.handOver(rel); err != nil {
			return err
		}
		return a.preflight(rel)
	}
	return a
}

func verb(action enginev1.RunRequest_Action) (func(*run) error, error) {
	switch action {
	case enginev1.RunRequest_INSTALL:
		return (*run).install, nil
	case enginev1.RunRequest_UPGRADE:
		return (*run).upgrade, nil
	case enginev1.RunRequest_ROLLBACK:
		return (*run).rollback, nil
	case enginev1.RunRequest_UNINSTALL:
		return (*run).uninstall, nil
	case enginev1.RunRequest_UNLOCK:
		return (*run).unlock, nil
	case enginev1.RunRequest_TEST:
		return (*run).test, nil
	}
	return nil, fault.New(enginev1.Fault_INVALID, "the request names no action")
}

// guard turns a panic in a chart's templates or in Helm into a failed action: other releases go on.
func (a *run) guard(act func(*run) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("helm panicked: %v", p)
		}
	}()
	return act(a)
}

// finish leaves nothing pending that this action made, and tells what storage holds.
func (a *run) finish(err error) *enginev1.Outcome {
	outcome := &enginev1.Outcome{Notes: a.notes, Logs: a.logs, Tests: a.tests, Hooks: a.hookResults()}
	failure := a.explain(err)
	if settleErr := a.records.settle(failure); settleErr != nil && failure == nil {
		failure = a.explain(settleErr)
	}
	if failure != nil {
		outcome.Fault = failure.Proto()
	}
	record, err := a.records.newest()
	if err != nil && failure == nil {
		outcome.Fault = a.explain(err).Proto()
	}
	if record == nil {
		return outcome
	}
	outcome.Record = record.proto(a.request.GetNamespace(), a.request.GetName())
	if refs, ok := a.cluster.Inventories.Get(a.request.GetNamespace(), a.request.GetName(), record.revision); ok {
		outcome.Inventory = inventory.Protos(refs)
	}
	return outcome
}

func (a *run) timeout() time.Duration {
	if ms := a.request.GetTimeoutMs(); ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return 5 * time.Minute
}

func (a *run) strategy() kube.WaitStrategy {
	if a.request.GetWait() {
		return kube.StatusWatcherStrategy
	}
	return kube.HookOnlyStrategy
}

// take claims a release. An action whose caller has left is about to end, so the next one waits for it; any
// other holder means busy.
func (r *Runner) take(ctx context.Context, key claim) bool {
	for {
		r.mutex.Lock()
		held := r.busy[key]
		if held == nil {
			r.busy[key] = &holder{caller: ctx, done: make(chan struct{})}
			r.mutex.Unlock()
			return true
		}
		r.mutex.Unlock()
		if held.caller.Err() == nil {
			return false
		}
		select {
		case <-held.done:
		case <-ctx.Done():
			return false
		}
	}
}

func (r *Runner) free(key claim) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	close(r.busy[key].done)
	delete(r.busy, key)
}

// phases passes on each change of phase once.
type phases struct {
	report  Progress
	hooks   func() []*enginev1.HookResult
	mutex   sync.Mutex
	started bool
	current enginev1.Progress_Phase
}

func (p *phases) say(phase enginev1.Progress_Phase, message string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.report == nil || (p.started && p.current == phase) {
		return
	}
	p.started, p.current = true, phase
	p.report(&enginev1.Progress{Phase: phase, Message: message, Hooks: p.hooks()})
}
