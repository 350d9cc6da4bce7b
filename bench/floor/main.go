// Command floor installs releases with the bare Helm 4 SDK: what any controller has to be measured against.
//
// It prints one JSON line. Nothing here is clever: warm discovery, no client-side validation, no throttling, and
// a goroutine per release.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
)

// hookTimeout bounds what Helm waits for: hooks.
const hookTimeout = 5 * time.Minute

type options struct {
	kubeconfig, chart, namespace, prefix string
	count, atOnce                        int
	timeout                              time.Duration
}

type result struct {
	InstalledSeconds float64 `json:"installed_s"`
	ReadySeconds     float64 `json:"ready_s"`
	CPUSeconds       float64 `json:"cpu_s"`
	PeakMegabytes    float64 `json:"peak_rss_mb"`
}

func main() {
	var asked options
	flag.StringVar(&asked.kubeconfig, "kubeconfig", "", "the cluster")
	flag.StringVar(&asked.chart, "chart", "", "directory of the chart")
	flag.StringVar(&asked.namespace, "namespace", "bench", "namespace of the releases; it must exist")
	flag.StringVar(&asked.prefix, "prefix", "f", "what the releases' names begin with")
	flag.IntVar(&asked.count, "n", 100, "how many releases")
	flag.IntVar(&asked.atOnce, "at-once", 20, "how many installs at the same time")
	flag.DurationVar(&asked.timeout, "timeout", 10*time.Minute, "when to give up")
	patches := flag.String("patches", "", "file with merge patches, one a line: only send them to the paths that follow, and tell the CPU of that")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, asked.timeout)
	defer cancel()
	var measured any
	var err error
	if *patches != "" {
		measured, err = patchAll(ctx, asked.kubeconfig, *patches, flag.Args())
	} else {
		measured, err = measure(ctx, asked)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(measured)
}

func measure(ctx context.Context, asked options) (*result, error) {
	shared, err := newCluster(asked.kubeconfig, asked.namespace)
	if err != nil {
		return nil, err
	}
	cpu, start := cpuSeconds(), time.Now()
	if err := installAll(ctx, shared, asked); err != nil {
		return nil, err
	}
	installed := time.Since(start)
	if err := shared.untilReady(ctx, asked); err != nil {
		return nil, err
	}
	ready := time.Since(start)
	return &result{
		InstalledSeconds: installed.Seconds(),
		ReadySeconds:     ready.Seconds(),
		CPUSeconds:       cpuSeconds() - cpu,
		PeakMegabytes:    peakMegabytes(),
	}, nil
}

// installAll stops at the first error: a floor with holes is not one.
func installAll(ctx context.Context, shared *cluster, asked options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range asked.atOnce {
		workers.Go(func() {
			for number := range numbers {
				if err := install(ctx, shared, asked, number); err != nil {
					cancel(fmt.Errorf("release %d: %w", number, err))
				}
			}
		})
	}
	for number := 0; number < asked.count && ctx.Err() == nil; number++ {
		select {
		case numbers <- number:
		case <-ctx.Done():
		}
	}
	close(numbers)
	workers.Wait()
	return context.Cause(ctx)
}

func install(ctx context.Context, shared *cluster, asked options, number int) error {
	// Helm writes into both the configuration and the chart.
	configuration := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := configuration.Init(shared.getter(), asked.namespace, "secrets"); err != nil {
		return err
	}
	chart, err := loader.LoadDir(asked.chart)
	if err != nil {
		return err
	}
	verb := action.NewInstall(configuration)
	verb.ReleaseName = fmt.Sprintf("%s%d", asked.prefix, number)
	verb.Namespace = asked.namespace
	verb.DisableOpenAPIValidation = true
	verb.WaitStrategy = kube.HookOnlyStrategy
	verb.Timeout = hookTimeout
	_, err = verb.RunWithContext(ctx, chart, map[string]any{"message": fmt.Sprintf("m%d", number)})
	return err
}
