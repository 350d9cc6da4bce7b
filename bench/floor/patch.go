package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// patched is what one patch costs the client library alone.
type patched struct {
	Patches    int     `json:"patches"`
	CPUSeconds float64 `json:"cpu_s"`
}

// patchAll sends every line of a file to every path, in order, to all paths at the same time.
func patchAll(ctx context.Context, kubeconfig, file string, paths []string) (*patched, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	bodies := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	shared, err := newCluster(kubeconfig, "")
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(shared.config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cpu := cpuSeconds()
	var all sync.WaitGroup
	for _, path := range paths {
		all.Go(func() {
			for _, body := range bodies {
				request := clients.RESTClient().Patch(types.MergePatchType).AbsPath(path).Body(body)
				if _, err := request.SetHeader("Accept", "application/json").Do(ctx).Raw(); err != nil {
					cancel(fmt.Errorf("%s: %w", path, err))
					return
				}
			}
		})
	}
	all.Wait()
	return &patched{len(bodies) * len(paths), cpuSeconds() - cpu}, context.Cause(ctx)
}
