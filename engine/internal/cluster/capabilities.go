package cluster

import (
	"context"
	"sync"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"k8s.io/client-go/discovery"

	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// capabilities caches what charts see as .Capabilities, until discovery changes.
type capabilities struct {
	mu         sync.Mutex
	value      *common.Capabilities
	generation int64
}

// Capabilities is what the API server can do, as Helm tells it to charts. The caller gets its own copy.
func (c *Cluster) Capabilities(_ context.Context) (*common.Capabilities, error) {
	cached := &c.connection.capabilities
	cached.mu.Lock()
	defer cached.mu.Unlock()
	generation := c.connection.discovery.current()
	if cached.value != nil && cached.generation == generation {
		return cached.value.Copy(), nil
	}
	version, err := c.connection.discovery.ServerVersion()
	if err != nil {
		return nil, fault.FromAPI(err)
	}
	// An aggregated API that is down hides its own kinds only.
	versions, err := action.GetVersionSet(c.connection.discovery)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fault.FromAPI(err)
	}
	kube, err := common.ParseKubeVersion(version.GitVersion)
	if err != nil {
		kube = &common.KubeVersion{Version: version.GitVersion}
	}
	kube.Major, kube.Minor = version.Major, version.Minor
	cached.value = &common.Capabilities{
		KubeVersion: *kube,
		APIVersions: versions,
		HelmVersion: common.DefaultCapabilities.HelmVersion,
	}
	cached.generation = generation
	return cached.value.Copy(), nil
}
