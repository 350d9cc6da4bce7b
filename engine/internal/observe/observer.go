package observe

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/drift"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

const (
	// kindLinger keeps the watch of a kind no release has, because upgrades drop and regain kinds.
	kindLinger = 30 * time.Second
	// retryBlind is how soon a kind that could not be watched is tried again, and then only for a new release.
	retryBlind = time.Minute
)

// observer is one cluster's eyes: the goroutines around a model.
type observer struct {
	at     *cluster.Cluster
	model  *model
	ctx    context.Context
	loader *loader
	checks *checker

	starting sync.Mutex // held while the context ends: no task starts after that
	cancel   context.CancelFunc
	tasks    sync.WaitGroup

	unlisten func()

	mu      sync.Mutex
	watches map[watchKey]context.CancelFunc
	blindAt map[watchKey]time.Time
	crdEyes bool

	recordEyes    map[string]context.CancelFunc // by namespace
	podEyes       map[string]*podEye            // by namespace
	scaled        map[string]bool               // namespaces with workloads that may be scaled
	scalerEyes    map[string]*scalerEye         // by namespace
	scalersNarrow bool

	askedWider time.Time
	// renew closes these eyes for good: who subscribes from now on gets new ones, which may see that resource.
	renew func(schema.GroupVersionResource)
	// mayRenew is false where that was done already, and did not help.
	mayRenew func(schema.GroupVersionResource) bool
}

var _ hands = (*observer)(nil)

func newObserver(at *cluster.Cluster) *observer {
	o := &observer{
		at:      at,
		watches: map[watchKey]context.CancelFunc{},
		blindAt: map[watchKey]time.Time{},

		recordEyes: map[string]context.CancelFunc{},
		podEyes:    map[string]*podEye{},
		scaled:     map[string]bool{},
		scalerEyes: map[string]*scalerEye{},

		unlisten: func() {},
	}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	o.model = newModel(o)
	o.loader = newLoader(o)
	o.checks = newChecker(o)
	return o
}

func (o *observer) start() {
	o.unlisten = o.at.Inventories.Listen(inventory.Listener{
		Put: func(namespace, name string, revision int) {
			o.model.inventoryPut(releaseKey{namespace, name}, revision)
			o.widen()
			o.retryScalers(namespace)
			o.retryPods(namespace)
		},
		Applied: func(namespace, name string, revision int, traces map[inventory.Ref]drift.Trace) {
			o.model.setApplied(releaseKey{namespace, name}, revision, traces)
		},
	})
	o.run(o.loader.run)
	for range checkers {
		o.run(o.checks.run)
	}
	o.run(o.watchRecords)
}

// stop ends every goroutine and waits for them.
func (o *observer) stop() {
	o.unlisten()
	o.starting.Lock()
	o.cancel()
	o.starting.Unlock()
	o.tasks.Wait()
}

// run starts a task that ends with the observer. News of actions may still be under way when that has stopped: then
// nobody would wait for the task.
func (o *observer) run(task func(context.Context)) {
	o.starting.Lock()
	defer o.starting.Unlock()
	if o.ctx.Err() != nil {
		return
	}
	o.tasks.Go(func() { task(o.ctx) })
}

// after runs a task later, unless the observer ends first.
func (o *observer) after(delay time.Duration, task func()) {
	o.run(func(ctx context.Context) {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
			task()
		case <-ctx.Done():
		}
	})
}

func (o *observer) known(key releaseKey, revision int) ([]inventory.Ref, bool) {
	return o.at.Inventories.Get(key.namespace, key.name, revision)
}

func (o *observer) traces(key releaseKey, revision int) []uint64 {
	return o.at.Inventories.Traces(key.namespace, key.name, revision)
}

func (o *observer) load(r *record) { o.loader.add(func(ctx context.Context) { o.loader.load(ctx, r) }) }

func (o *observer) remember(r *record, refs []inventory.Ref) {
	o.loader.add(func(context.Context) {
		o.at.Inventories.Save(r.uid, r.secretState, refs, o.traces(r.release, r.revision))
	})
}

func (o *observer) forget(r *record) {
	o.at.Inventories.Forget(r.release.namespace, r.release.name, r.revision)
	o.loader.add(func(context.Context) { o.at.Inventories.Discard(r.uid) })
}

func (o *observer) watch(at watchKey) {
	ctx, cancel := context.WithCancel(o.ctx)
	o.mu.Lock()
	if old := o.watches[at]; old != nil {
		old()
	}
	o.watches[at] = cancel
	o.mu.Unlock()
	o.run(func(context.Context) { o.watchKind(ctx, at) })
}

func (o *observer) unwatch(at watchKey) {
	o.after(kindLinger, func() { o.model.retire(at) })
}

func (o *observer) end(at watchKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if cancel := o.watches[at]; cancel != nil {
		cancel()
		delete(o.watches, at)
	}
	delete(o.blindAt, at)
}

func (o *observer) retry(at watchKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if since, ok := o.blindAt[at]; ok && time.Since(since) > retryBlind {
		delete(o.blindAt, at)
		o.run(func(context.Context) { o.model.again(at) })
	}
}

func (o *observer) check(at watchKey, key objectKey, urgent bool) {
	o.checks.add(at, key, urgent)
}
