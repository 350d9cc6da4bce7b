package supervise

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// componentNames are the processes of a cluster, in the order in which they start.
var componentNames = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

// options are the command line of `devcluster up`.
type options struct {
	dir            string
	name           string
	ephemeral      bool
	nodes          int
	port           int
	stopOnStdinEOF bool
	readyTimeout   time.Duration
	binaries       map[string]string // component → program to run instead of ourselves
}

func parseOptions(arguments []string) (options, error) {
	options := options{binaries: map[string]string{}}
	flags := flag.NewFlagSet("devcluster up", flag.ContinueOnError)
	flags.StringVar(&options.dir, "dir", "", "directory that holds the cluster: data, certificates, kubeconfig, logs")
	flags.StringVar(&options.name, "name", "dev", "name of the cluster, used in its kubeconfig")
	flags.BoolVar(&options.ephemeral, "ephemeral", false, "keep the data in memory and forget it at the end")
	flags.IntVar(&options.nodes, "nodes", 1, "how many nodes the cluster has")
	flags.IntVar(&options.port, "port", 0, "port of the API server on 127.0.0.1; 0 keeps the last one or picks a free one")
	flags.BoolVar(&options.stopOnStdinEOF, "stop-on-stdin-eof", false, "stop when standard input closes")
	flags.DurationVar(&options.readyTimeout, "ready-timeout", 2*time.Minute, "give up if the cluster is not ready by then")
	flags.Func("binary", "COMPONENT=PATH: run this program for a component", func(value string) error {
		component, path, found := strings.Cut(value, "=")
		if !found || !slices.Contains(componentNames, component) {
			return fmt.Errorf("%q is not COMPONENT=PATH with a component of %s", value, strings.Join(componentNames, ", "))
		}
		absolute, err := filepath.Abs(path)
		options.binaries[component] = absolute
		return err
	})
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(0)
		}
		return options, err
	}
	switch {
	case flags.NArg() > 0:
		return options, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case options.dir == "":
		return options, errors.New("--dir is required: the directory that holds the cluster")
	case options.nodes < 1:
		return options, errors.New("--nodes must be at least 1")
	case options.port < 0 || options.port > 65535:
		return options, fmt.Errorf("--port %d is not a port number", options.port)
	}
	dir, err := filepath.Abs(options.dir)
	options.dir = dir
	return options, err
}
