package observe

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/drift"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

// hands does what the model needs done. It is called with the model locked: it must neither wait nor call back.
type hands interface {
	// known is a revision's inventory, if it is in memory.
	known(key releaseKey, revision int) ([]inventory.Ref, bool)
	// traces says how each object of a revision was when it was applied, as far as that is known.
	traces(key releaseKey, revision int) []uint64
	// load fetches a record's inventory in the background, then calls setInventory.
	load(r *record)
	// remember writes the inventory of a record that will not change again; forget undoes it.
	remember(r *record, refs []inventory.Ref)
	forget(r *record)
	// watch starts looking, then calls replaceObjects, blind or narrow. unwatch is told that no release needs the
	// watch now, and calls retire when that has lasted; end is how retire ends the watch.
	watch(at watchKey)
	// retry is told that one more release has a kind that could not be watched.
	retry(at watchKey)
	unwatch(at watchKey)
	end(at watchKey)
	// check reads one object that the watch does not show, then calls checked. Not urgent: the watch may be a
	// moment behind, so wait for it first.
	check(at watchKey, key objectKey, urgent bool)
	// records follows the release records of one namespace, or no longer.
	records(namespace string, on bool)
	// pods is told that a namespace has workloads that are not current, or has none any more.
	pods(namespace string, on bool)
	// scalers is told that a namespace has workloads that may be scaled by others.
	scalers(namespace string)
}

// watchKey names one watch.
type watchKey struct {
	schema.GroupVersionKind
	namespace string // empty: all
	name      string // of the one object to look at; empty: those with Helm's label
	own       bool   // that object, or with no name all of the namespace, is looked at for want of the label
}

// model is what is known of one cluster: records, and the state of every object of every release's newest
// revision. It makes no request itself.
type model struct {
	hands hands

	mu            sync.Mutex
	releases      map[releaseKey]*release
	kinds         map[watchKey]*kind
	narrowed      map[schema.GroupVersionKind]bool // kinds that may not be watched in all namespaces at once
	spaces        map[string]*space                // where records are seen by namespace; nil: everywhere at once
	attentions    map[releaseKey]*attention
	troubled      map[string]int                      // workloads that are not current, by namespace
	pods          map[workload]map[string]string      // why pods fail, by workload and pod
	scalersOf     map[workload]map[string]objectState // by what they scale and their name
	scalersIn     map[string]bool                     // where they have been looked for, and whether they may be seen; "": everywhere
	scalersFailed map[string]time.Time                // where they could not be listed, and since when
	unscaled      map[releaseKey]struct{}             // releases that are told when the autoscalers are known
	recordsSynced bool
	fault         *enginev1.Fault // why records cannot be seen now
	subscriptions map[*Subscription]struct{}
}

// release is a Helm release: its records, and the members of the revision that is looked after.
type release struct {
	key     releaseKey
	records map[int]*record
	newest  *record

	revision   int // of members; 0 while there are none
	refs       []inventory.Ref
	members    []*member
	external   []*member // objects of others
	unresolved int       // members whose state is not known yet
	whole      bool      // every member's state has been known, so it has been told
	saved      string    // the state of the record whose inventory is on disk
}

// member is one object of a release.
type member struct {
	release *release
	ref     inventory.Ref
	kind    *kind // nil for a placeholder
	key     objectKey
	state   objectState
	known   bool
	absent  bool // not in its kind's watch, and not read since
	// external: not of the release's inventory, but asked for.
	external bool
	troubled bool // counted as a workload that is not current
	applied  drift.Trace
}

func newModel(h hands) *model {
	return &model{
		hands:         h,
		releases:      map[releaseKey]*release{},
		kinds:         map[watchKey]*kind{},
		narrowed:      map[schema.GroupVersionKind]bool{},
		attentions:    map[releaseKey]*attention{},
		troubled:      map[string]int{},
		pods:          map[workload]map[string]string{},
		scalersOf:     map[workload]map[string]objectState{},
		scalersIn:     map[string]bool{},
		scalersFailed: map[string]time.Time{},
		unscaled:      map[releaseKey]struct{}{},
		subscriptions: map[*Subscription]struct{}{},
	}
}

// putRecord takes a new or changed record.
func (m *model) putRecord(r *record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(r)
}

func (m *model) put(r *record) {
	rel := m.releases[r.release]
	if rel == nil {
		rel = &release{key: r.release, records: map[int]*record{}}
		m.releases[r.release] = rel
	}
	old := rel.records[r.revision]
	rel.records[r.revision] = r
	if old == nil || !old.same(r) {
		m.tellRecord(r)
	}
	if rel.newest == nil || r.revision >= rel.newest.revision {
		if was := rel.newest; was != nil && was.revision != r.revision {
			m.hands.forget(was)
		}
		rel.newest = r
		m.consider(rel)
	}
}

// dropRecord takes a record's disappearance.
func (m *model) dropRecord(r *record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(r)
}

func (m *model) drop(r *record) {
	rel := m.releases[r.release]
	if rel == nil || rel.records[r.revision] == nil {
		return
	}
	delete(rel.records, r.revision)
	m.hands.forget(r)
	m.tellRecord(r)
	if rel.newest.revision != r.revision {
		return
	}
	rel.newest = nil
	for _, other := range rel.records {
		if rel.newest == nil || other.revision > rel.newest.revision {
			rel.newest = other
		}
	}
	m.consider(rel)
}

// replaceRecords takes a complete list, of one namespace or of all: what is not in it is gone.
func (m *model) replaceRecords(namespace string, records []*record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	type id struct {
		key      releaseKey
		revision int
	}
	seen := make(map[id]bool, len(records))
	for _, r := range records {
		seen[id{r.release, r.revision}] = true
	}
	for _, rel := range m.releases {
		if namespace != "" && rel.key.namespace != namespace {
			continue
		}
		for _, r := range rel.records {
			if !seen[id{r.release, r.revision}] {
				m.drop(r)
			}
		}
	}
	for _, r := range records {
		m.put(r)
	}
	if namespace == "" {
		m.recordsSynced = true
		m.tellAll()
		return
	}
	m.see(namespace, true, nil)
}

// consider decides which revision's objects to look after.
func (m *model) consider(rel *release) {
	newest := rel.newest
	switch {
	case newest == nil:
		m.track(rel, 0, nil, "")
		delete(m.releases, rel.key)
		return
	case newest.over() || m.attentions[rel.key] == nil:
		// Nobody looks after the second kind: where many credentials lead to one cluster, most are others' business.
		if rel.revision != 0 {
			m.track(rel, 0, nil, "")
		}
		return
	}
	if rel.revision != newest.revision {
		refs, ok := m.hands.known(rel.key, newest.revision)
		if !ok {
			// While an action is under way its record says little, and the old revision's objects are still
			// worth watching. What is being uninstalled is not worth reading.
			if !newest.pending() && !newest.uninstalling() {
				m.hands.load(newest)
			}
			return
		}
		m.track(rel, newest.revision, refs, "")
		return
	}
	m.settle(rel)
}

// inventoryPut is told that an inventory is now in memory.
func (m *model) inventoryPut(key releaseKey, revision int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if rel := m.releases[key]; rel != nil && rel.newest.revision == revision && rel.revision != revision {
		m.consider(rel)
	}
}

// setInventory gives a record's inventory, unless a newer record has made it old. saved is the state of the
// record for which it is on disk already.
func (m *model) setInventory(r *record, refs []inventory.Ref, saved string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if rel := m.lacking(r); rel != nil {
		m.track(rel, r.revision, refs, saved)
	}
}

// setUnreadable says that a record cannot be read: its objects are unknown, and so is whether it has any.
func (m *model) setUnreadable(r *record, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rel := m.lacking(r)
	if rel == nil {
		return
	}
	m.track(rel, 0, nil, "")
	rel.revision = r.revision
	rel.members = []*member{{
		release: rel, known: true, state: unknown(reason),
		ref: inventory.NewRef("v1", "Secret", r.release.namespace, r.secret),
	}}
	rel.whole = true
	m.tellWhole(rel)
}

// wanted tells whether a record still lacks its inventory.
func (m *model) wanted(r *record) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lacking(r) != nil
}

// lacking is the release of a record, if that is the newest and its inventory is not known yet.
func (m *model) lacking(r *record) *release {
	rel := m.releases[r.release]
	if rel == nil || m.attentions[r.release] == nil || rel.newest.revision != r.revision ||
		rel.revision == r.revision || rel.newest.over() {
		return nil
	}
	return rel
}
