package cluster

import (
	"net/http"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

// connection is what all identities of one set of credentials share: the transport (one HTTP/2 connection),
// what the API server serves, and the inventories of its releases.
type connection struct {
	config       *rest.Config
	transport    http.RoundTripper
	discovery    *cachedDiscovery
	mapper       *mapper
	capabilities capabilities
	inventories  *inventory.Store
}

func (r *Registry) newConnection(request *enginev1.ConnectRequest) (*connection, error) {
	config, found, err := restConfig(request)
	if err != nil {
		return nil, err
	}
	if err := r.identify(config, found, request); err != nil {
		return nil, err
	}
	if err := r.guard(config, request); err != nil {
		return nil, err
	}
	config.QPS = -1
	config.UserAgent = request.GetUserAgent()
	if config.UserAgent == "" {
		config.UserAgent = "pilothouse"
	}
	// On a fast link, compressing and decompressing costs more than the bytes saved.
	config.DisableCompression = true
	config.WarningHandler = rest.NoWarnings{}
	round, err := rest.TransportFor(config)
	if err != nil {
		return nil, fault.Wrap(enginev1.Fault_INVALID, err, "the kubeconfig's certificates, key or proxy cannot be used")
	}
	// Host is normalised here, so that messages and copies show a URL ("host:port" is legal in a kubeconfig).
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fault.Wrap(enginev1.Fault_INVALID, err, "the kubeconfig's server is not a URL")
	}
	config.Host = server.String()
	base := &connection{config: config, transport: round, inventories: inventory.NewStore(r.CacheDir)}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(
		&rest.Config{Host: config.Host, UserAgent: config.UserAgent, QPS: -1, WarningHandler: rest.NoWarnings{}},
		&http.Client{Transport: round})
	if err != nil {
		return nil, fault.Wrap(enginev1.Fault_INVALID, err, "the kubeconfig's server is not a URL")
	}
	base.discovery = newCachedDiscovery(client)
	base.mapper = &mapper{discovery: base.discovery}
	return base, nil
}
