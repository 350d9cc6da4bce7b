package cluster

import (
	"sync"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
)

// refreshEvery is how often, at most, a missing kind or Helm's own invalidation may ask the API server again.
const refreshEvery = 3 * time.Second

// cachedDiscovery is a memory cache whose invalidation is tamed: Helm and kubectl invalidate on almost every
// action, and each time would cost two requests and the parsing of every API's resources.
type cachedDiscovery struct {
	discovery.CachedDiscoveryInterface
	now func() time.Time

	mu         sync.Mutex
	refreshed  time.Time
	generation int64
}

func newCachedDiscovery(client discovery.DiscoveryInterface) *cachedDiscovery {
	return &cachedDiscovery{CachedDiscoveryInterface: memory.NewMemCacheClient(client), now: time.Now}
}

// Invalidate is what Helm calls; it is heard once in a while.
func (d *cachedDiscovery) Invalidate() { d.refresh() }

// Fresh stops client-go's own mappers from invalidating in a loop.
func (d *cachedDiscovery) Fresh() bool { return true }

// refresh drops the cache unless that was done a moment ago, and tells whether it did.
func (d *cachedDiscovery) refresh() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now().Sub(d.refreshed) < refreshEvery {
		return false
	}
	d.drop()
	return true
}

// force drops the cache, however recent: something that we know changed what is served.
func (d *cachedDiscovery) force() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop()
	// The API server serves a new kind only a moment after its CRD was written, so the very next miss may ask again.
	d.refreshed = time.Time{}
}

func (d *cachedDiscovery) drop() {
	d.CachedDiscoveryInterface.Invalidate()
	d.refreshed = d.now()
	d.generation++
}

// current numbers the cache's content: what was derived from an older one is stale.
func (d *cachedDiscovery) current() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.generation
}
