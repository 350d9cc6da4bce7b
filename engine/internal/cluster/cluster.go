// Package cluster keeps warm clients for every cluster the brain has connected to.
//
// A connection (credentials) owns the transport, discovery and inventories; a Cluster is a connection seen
// through one identity. The rule to keep: nobody gets a rest.Config that someone else may hold, because
// kubectl's factory writes into it and requests then go to wrong paths.
package cluster

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// Cluster is one API server, reached with one set of credentials and one identity.
type Cluster struct {
	ID     string // the handle given to the brain
	Server string // the API server's URL, for messages
	// Inventories are shared by every identity of the same credentials.
	Inventories *inventory.Store

	connection *connection
	config     *rest.Config
	client     *http.Client
	clientset  kubernetes.Interface
	dynamic    dynamic.Interface
	metadata   metadata.Interface
	rest       rest.Interface
}

// newCluster builds the clients; nothing here talks to the API server.
func newCluster(id string, base *connection, as *enginev1.Impersonation) (*Cluster, error) {
	round := base.transport
	if as.GetUser() != "" {
		round = transport.NewImpersonatingRoundTripper(
			transport.ImpersonationConfig{UserName: as.GetUser(), Groups: as.GetGroups()}, round)
	}
	c := &Cluster{
		ID:          id,
		Server:      base.config.Host,
		Inventories: base.inventories,
		connection:  base,
		client:      &http.Client{Transport: round},
		// Credentials and TLS live in the transport: a config that leaves this package carries no secret.
		config: &rest.Config{
			Host:               base.config.Host,
			APIPath:            base.config.APIPath,
			UserAgent:          base.config.UserAgent,
			Transport:          round,
			DisableCompression: true,
			QPS:                -1,
			WarningHandler:     rest.NoWarnings{},
		},
	}
	return c, c.build()
}

func (c *Cluster) build() error {
	typed := c.Config()
	typed.ContentType = protobuf
	typed.AcceptContentTypes = protobuf + ",application/json"
	clientset, err := kubernetes.NewForConfigAndClient(typed, c.client)
	if err != nil {
		return fmt.Errorf("typed client: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(c.Config(), c.client)
	if err != nil {
		return fmt.Errorf("dynamic client: %w", err)
	}
	metadataClient, err := metadata.NewForConfigAndClient(c.Config(), c.client)
	if err != nil {
		return fmt.Errorf("metadata client: %w", err)
	}
	plain := c.Config()
	plain.GroupVersion = &schema.GroupVersion{}
	plain.APIPath = "/every-request-sets-its-own-path"
	plain.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	restClient, err := rest.RESTClientForConfigAndClient(plain, c.client)
	if err != nil {
		return fmt.Errorf("raw client: %w", err)
	}
	c.clientset, c.dynamic, c.metadata, c.rest = clientset, dynamicClient, metadataClient, restClient
	return nil
}

// Config is a copy for the caller alone: unthrottled, over the shared transport.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Getter is what Helm and kubectl's factory ask for clients: a copied config, shared discovery and mapper.
func (c *Cluster) Getter(namespace string) genericclioptions.RESTClientGetter {
	return &getter{cluster: c, namespace: namespace}
}

// Secrets is the client Helm's storage is built on.
func (c *Cluster) Secrets(namespace string) corev1client.SecretInterface {
	return c.clientset.CoreV1().Secrets(namespace)
}

// Clientset is the typed client; it speaks protobuf.
func (c *Cluster) Clientset() kubernetes.Interface { return c.clientset }

// Dynamic is the client for objects of any kind.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Metadata is the client that fetches nothing but metadata.
func (c *Cluster) Metadata() metadata.Interface { return c.metadata }

// REST is the client of the raw verbs: absolute paths, bytes in and out.
func (c *Cluster) REST() rest.Interface { return c.rest }

// HTTP is the transport under every client: authenticated, guarded, shared.
func (c *Cluster) HTTP() *http.Client { return c.client }

// Mapper maps kinds to resources; a kind it does not know makes it look again.
func (c *Cluster) Mapper() meta.ResettableRESTMapper { return c.connection.mapper }

// InvalidateDiscovery makes the next question about kinds ask the API server: call it after CRD writes.
func (c *Cluster) InvalidateDiscovery() { c.connection.discovery.force() }
