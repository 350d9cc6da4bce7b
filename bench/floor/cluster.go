package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// cluster is what all installs share.
type cluster struct {
	config    *rest.Config
	namespace string
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.RESTMapper
}

// warmDiscovery does not hear Helm, which drops the cache before every render.
type warmDiscovery struct {
	discovery.CachedDiscoveryInterface
}

func (warmDiscovery) Invalidate() {}
func (warmDiscovery) Fresh() bool { return true }

func newCluster(kubeconfig, namespace string) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.DisableCompression = true
	client, err := discovery.NewDiscoveryClientForConfig(rest.CopyConfig(config))
	if err != nil {
		return nil, err
	}
	warm := warmDiscovery{memory.NewMemCacheClient(client)}
	groups, err := restmapper.GetAPIGroupResources(warm)
	if err != nil {
		return nil, err
	}
	return &cluster{config, namespace, warm, restmapper.NewDiscoveryRESTMapper(groups)}, nil
}

func (c *cluster) getter() *getter { return &getter{c} }

// untilReady follows the Deployments in one watch, which begins with those that are there already.
func (c *cluster) untilReady(ctx context.Context, asked options) error {
	config := rest.CopyConfig(c.config)
	config.ContentType = protobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	watch, err := client.AppsV1().Deployments(c.namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watch.Stop()
	ready := map[string]bool{}
	for event := range watch.ResultChan() {
		deployment, ok := event.Object.(*appsv1.Deployment)
		if !ok {
			return fmt.Errorf("the watch said %v", event.Object)
		}
		if strings.HasPrefix(deployment.Name, asked.prefix) && isReady(deployment) {
			ready[deployment.Name] = true
		}
		if len(ready) == asked.count {
			return nil
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%d of %d Deployments are ready: %w", len(ready), asked.count, err)
	}
	return errors.New("the watch ended before all Deployments were ready")
}

func isReady(deployment *appsv1.Deployment) bool {
	status := deployment.Status
	return status.ObservedGeneration >= deployment.Generation &&
		status.ReadyReplicas == *deployment.Spec.Replicas &&
		status.UpdatedReplicas == *deployment.Spec.Replicas
}

// getter gives every action its own copy of the config: kubectl's factory writes into it.
type getter struct {
	cluster *cluster
}

func (g *getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.cluster.config), nil }

func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.cluster.discovery, nil
}

func (g *getter) ToRESTMapper() (meta.RESTMapper, error) { return g.cluster.mapper, nil }

func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), &clientcmd.ConfigOverrides{
		Context: clientcmdapi.Context{Namespace: g.cluster.namespace},
	})
}
