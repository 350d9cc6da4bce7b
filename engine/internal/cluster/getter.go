package cluster

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// getter implements genericclioptions.RESTClientGetter over a cluster's shared clients.
type getter struct {
	cluster   *Cluster
	namespace string
}

func (g *getter) ToRESTConfig() (*rest.Config, error) { return g.cluster.Config(), nil }

func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.cluster.connection.discovery, nil
}

func (g *getter) ToRESTMapper() (meta.RESTMapper, error) { return g.cluster.connection.mapper, nil }

// ToRawKubeConfigLoader is asked for the default namespace only: there is no kubeconfig behind it.
func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), &clientcmd.ConfigOverrides{
		Context: clientcmdapi.Context{Namespace: g.namespace},
	})
}
