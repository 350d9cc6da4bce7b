package cluster

import (
	"context"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// guard makes a user's kubeconfig connect through the egress guard, by whatever proxy it names. The operator's own
// goes where it likes, and its server is what users are kept away from.
func (r *Registry) guard(config *rest.Config, request *enginev1.ConnectRequest) error {
	if r.Guard == nil {
		return nil
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fault.Wrap(enginev1.Fault_INVALID, err, "the kubeconfig's server is not a URL")
	}
	if request.GetTrusted() || request.GetInCluster() {
		return r.Guard.Protect(server.String())
	}
	if err := r.Guard.CheckURL(context.Background(), server); err != nil {
		return err
	}
	proxy := config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	config.Dial, config.Proxy = r.Guard.DialContext, r.Guard.Proxy(proxy)
	return nil
}
