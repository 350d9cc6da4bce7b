// Command devcluster is a whole Kubernetes control plane in one multi-call binary.
//
// The first argument (or the name it is called by) chooses a component; `up` is ours: it
// bootstraps certificates, starts the other components as children, and waits until a pod can run.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pilothouse-dev/pilothouse/devcluster/internal/supervise"
)

// components maps a name to what runs under it; each takes over os.Args and never returns normally.
var components = map[string]func() error{
	"etcd":                    runEtcd,
	"kube-apiserver":          runAPIServer,
	"kube-controller-manager": runControllerManager,
	"kube-scheduler":          runScheduler,
	"kubectl":                 runKubectl,
	"kwok":                    runKwok,
	"up":                      supervise.Main,
}

func main() {
	name := filepath.Base(os.Args[0])
	run, known := components[name]
	if !known && len(os.Args) > 1 {
		name = os.Args[1]
		run, known = components[name]
		if known {
			// Each component parses os.Args itself, so it must look as if it had been called directly.
			os.Args = append([]string{name}, os.Args[2:]...)
		}
	}
	if !known {
		fmt.Fprintln(os.Stderr, "usage: devcluster up|etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kwok|kubectl [flags]")
		os.Exit(2)
	}
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
