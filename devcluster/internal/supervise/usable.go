package supervise

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

const replicaSets = "/apis/apps/v1/namespaces/kube-system/replicasets"

var (
	//go:embed manifests/storage-class.json
	storageClass json.RawMessage
	//go:embed manifests/probe.json
	probe json.RawMessage
)

// createBasics creates what a cluster has from its first day: nodes and a storage class.
func (c *client) createBasics(ctx context.Context, nodes int) error {
	for number := range nodes {
		name := nodeName(number)
		if err := poll(ctx, "creating "+name, func() error { return c.create(ctx, "/api/v1/nodes", node(name)) }); err != nil {
			return err
		}
	}
	return poll(ctx, "creating the storage class", func() error {
		return c.create(ctx, "/apis/storage.k8s.io/v1/storageclasses", storageClass)
	})
}

// waitUntilUsable returns when a pod can run: it runs one, so no component can be half awake.
func (c *client) waitUntilUsable(ctx context.Context, nodes int) error {
	var created struct{ Metadata struct{ Name string } }
	if err := poll(ctx, "creating a test pod", func() error {
		return c.do(ctx, http.MethodPost, replicaSets, probe, &created)
	}); err != nil {
		return err
	}
	for number := range nodes {
		name := nodeName(number)
		if err := poll(ctx, name+" to be ready", func() error { return c.nodeReady(ctx, name) }); err != nil {
			return err
		}
	}
	if err := poll(ctx, "the default service account", func() error {
		return c.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
	}); err != nil {
		return err
	}
	if err := poll(ctx, "a test pod to run", func() error { return c.probeReady(ctx, created.Metadata.Name) }); err != nil {
		return err
	}
	// All of them: an earlier start may have been cut short before it came here.
	leftovers := replicaSets + "?labelSelector=app%3Dstart-probe"
	return c.do(ctx, http.MethodDelete, leftovers, map[string]string{"propagationPolicy": "Background"}, nil)
}

func (c *client) probeReady(ctx context.Context, name string) error {
	var found struct{ Status struct{ ReadyReplicas int } }
	if err := c.get(ctx, replicaSets+"/"+name, &found); err != nil {
		return err
	}
	if found.Status.ReadyReplicas == 0 {
		return errors.New("it is not ready")
	}
	return nil
}

func nodeName(number int) string { return fmt.Sprintf("node-%d", number+1) }

func node(name string) any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{
			"name": name,
			"labels": map[string]string{
				"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
				"node.kubernetes.io/instance-type": "kwok",
			},
		},
	}
}

func (c *client) nodeReady(ctx context.Context, name string) error {
	var node struct {
		Spec struct {
			Taints []struct{ Key string }
		}
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	if err := c.get(ctx, "/api/v1/nodes/"+name, &node); err != nil {
		return err
	}
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("it still has the taint %s", node.Spec.Taints[0].Key)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			return nil
		}
	}
	return errors.New("its Ready condition is not True")
}
