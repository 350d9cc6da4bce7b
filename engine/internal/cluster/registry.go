package cluster

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// idleAfter is when a cluster nobody asked for is dropped: rotated credentials would otherwise pile up.
// Whoever still holds its handle is told to connect again.
const idleAfter = time.Hour

// Registry holds the clusters the brain has connected to.
type Registry struct {
	// CacheDir is where inventories are kept between runs; empty means nowhere. Set it before the first Connect.
	CacheDir string
	// TokenClient asks for the tokens of cloud identities; nil is the usual one. Tests answer for the clouds with it.
	TokenClient *http.Client
	// Guard stands before every server that an untrusted kubeconfig names; nil lets everything pass, for tests.
	Guard *egress.Guard

	key         []byte // of the handles' digest: a handle in a log must not help to guess a password
	mu          sync.Mutex
	clusters    map[string]*held
	connections map[string]*connection
}

type held struct {
	cluster    *Cluster
	connection string
	used       time.Time
}

// NewRegistry makes an empty registry.
func NewRegistry() *Registry {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails, by its contract
	return &Registry{key: key, clusters: map[string]*held{}, connections: map[string]*connection{}}
}

// Connect gives the cluster for these credentials and this identity. It reads the credentials only: the API
// server need not be reachable.
func (r *Registry) Connect(_ context.Context, request *enginev1.ConnectRequest) (*Cluster, error) {
	if slices.Contains(request.GetImpersonate().GetGroups(), mastersGroup) {
		return nil, fault.New(enginev1.Fault_INVALID, "acting as a member of %s is never allowed", mastersGroup)
	}
	if request.GetImpersonate().GetUser() == "" && len(request.GetImpersonate().GetGroups()) > 0 {
		return nil, fault.New(enginev1.Fault_INVALID, "an impersonation needs a user, not only groups")
	}
	id := r.digest(request)
	credentials := proto.Clone(request).(*enginev1.ConnectRequest)
	credentials.Impersonate = nil
	baseID := r.digest(credentials)

	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.expire(now)
	if known, ok := r.clusters[id]; ok {
		known.used = now
		return known.cluster, nil
	}
	base, ok := r.connections[baseID]
	if !ok {
		var err error
		if base, err = r.newConnection(request); err != nil {
			return nil, err
		}
	}
	if base.config.Impersonate.UserName != "" && request.GetImpersonate().GetUser() != "" {
		return nil, fault.New(enginev1.Fault_INVALID,
			"the kubeconfig already acts as another user, so nobody else can be impersonated through it")
	}
	made, err := newCluster(id, base, request.GetImpersonate())
	if err != nil {
		return nil, fault.Wrap(enginev1.Fault_INVALID, err, "the kubeconfig cannot be used: %v", err)
	}
	r.connections[baseID] = base
	r.clusters[id] = &held{cluster: made, connection: baseID, used: now}
	return made, nil
}

// Get finds a cluster by its handle.
func (r *Registry) Get(id string) (*Cluster, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.clusters[id]
	if !ok {
		return nil, fault.New(enginev1.Fault_UNKNOWN_CLUSTER, "the cluster handle is not known to this engine: connect again")
	}
	known.used = time.Now()
	return known.cluster, nil
}

// expire drops idle clusters and the connections no cluster uses any more. Streams under way keep theirs.
func (r *Registry) expire(now time.Time) {
	live := map[string]bool{}
	for id, known := range r.clusters {
		if now.Sub(known.used) > idleAfter {
			delete(r.clusters, id)
			continue
		}
		live[known.connection] = true
	}
	for id := range r.connections {
		if !live[id] {
			delete(r.connections, id)
		}
	}
}

func (r *Registry) digest(request *enginev1.ConnectRequest) string {
	raw, _ := proto.MarshalOptions{Deterministic: true}.Marshal(request) // fails only on invalid UTF-8, which cannot arrive
	mac := hmac.New(sha256.New, r.key)
	_, _ = mac.Write(raw)
	return hex.EncodeToString(mac.Sum(nil)[:20])
}
