// Command engine is the part of Pilothouse that talks to Kubernetes and Helm.
//
// It serves the contract on a private Unix socket, says so in one JSON line on stdout, and stops when stdin
// closes: its life is that of the brain that started it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"google.golang.org/grpc"
	"helm.sh/helm/v4/pkg/kube"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/pilothouse-dev/pilothouse/engine/internal/chart"
	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/getterplugin"
	"github.com/pilothouse-dev/pilothouse/engine/internal/gitsource"
	"github.com/pilothouse-dev/pilothouse/engine/internal/helm"
	"github.com/pilothouse-dev/pilothouse/engine/internal/keychain"
	"github.com/pilothouse-dev/pilothouse/engine/internal/observe"
	"github.com/pilothouse-dev/pilothouse/engine/internal/server"
)

const (
	maxMessage = 64 << 20
	window     = 1 << 20
	// objectsSuffix names the socket for calls on single objects and for watches, beside the one for gRPC.
	objectsSuffix = ".objects"
)

// version is set by the build.
var version = "dev"

// settings are what the operator may set.
type settings struct {
	socket   string
	cacheDir string
	allow    []string
	plugins  getterplugin.Options
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == getterplugin.Argument {
		exit(getterplugin.Child(os.Stdin, os.Stdout))
		return
	}
	var set settings
	flag.StringVar(&set.socket, "socket", "", "path of the Unix socket to serve on, in a private directory")
	flag.StringVar(&set.cacheDir, "cache-dir", "", "directory for what is worth keeping between runs; empty: beside the socket")
	repeated("egress-allow", &set.allow, "host:port on loopback or of the API server that users may have the engine connect to; host:* for any port")
	flag.StringVar(&set.plugins.Dir, "getter-plugins", "", "directory with Helm getter plugins; empty: none")
	repeated("getter-plugin-scheme", &set.plugins.Schemes, "URL scheme that getter plugins may be used for")
	showVersion := flag.Bool("version", false, "print the version and exit")
	flag.Parse()
	if *showVersion {
		fmt.Println(version)
		return
	}
	exit(run(set))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		os.Exit(1)
	}
}

// repeated is a flag that may be given several times.
func repeated(name string, into *[]string, usage string) {
	flag.Func(name, usage+"; may be repeated", func(value string) error { *into = append(*into, value); return nil })
}

func run(set settings) error {
	setUp()
	socket := set.socket
	guard, err := newGuard(set.allow)
	if err != nil {
		return err
	}
	listener, err := listen(socket)
	if err != nil {
		return err
	}
	objects, err := listen(socket + objectsSuffix)
	if err != nil {
		return err
	}
	engine, err := newServer(set, guard)
	if err != nil {
		return err
	}
	stop := make(chan string, 4)
	watchParent(stop)
	grpcServer := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(4*window),
	)
	enginev1.RegisterEngineServer(grpcServer, engine)
	failed := make(chan error, 2)
	go func() { failed <- grpcServer.Serve(listener) }()
	go func() { failed <- engine.ServeObjects(objects) }()
	if err := greet(os.Stdout, socket); err != nil {
		return fmt.Errorf("nobody reads the handshake: %w", err)
	}
	select {
	case err = <-failed:
	case reason := <-stop:
		slog.Info("stopping", "why", reason)
		grpcServer.Stop()
	}
	_, _ = os.Remove(socket), os.Remove(socket+objectsSuffix)
	return err
}

// newGuard keeps users away from the API server of the pod's own cluster too, whichever the management cluster is.
func newGuard(allow []string) (*egress.Guard, error) {
	policy := egress.Policy{Allow: allow}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host != "" && port != "" {
		policy.APIServers = append(policy.APIServers, net.JoinHostPort(host, port))
	}
	return egress.New(policy)
}

// newServer puts the engine together. What needs a directory has one: without --cache-dir it is the socket's,
// and nothing in it outlives this run's.
func newServer(set settings, guard *egress.Guard) (*server.Server, error) {
	clusters := cluster.NewRegistry()
	clusters.Guard = guard
	cacheDir := set.cacheDir
	if cacheDir == "" {
		cacheDir = filepath.Join(filepath.Dir(set.socket), "cache")
	}
	plugins, err := getterplugin.New(set.plugins)
	if err != nil {
		return nil, err
	}
	clusters.CacheDir = filepath.Join(cacheDir, "inventories")
	charts, err := chart.New(chart.Options{
		Dir:         filepath.Join(cacheDir, "charts"),
		DialContext: guard.DialContext,
		Proxy:       guard.Proxy(http.ProxyFromEnvironment),
		Keychain:    newKeychain(),
		Verify:      chart.NewSignatures(),
	})
	if err != nil {
		return nil, err
	}
	charts.RegisterGit(gitsource.New(guard, filepath.Join(cacheDir, "git"), gitsource.Limits{}))
	charts.RegisterPlugins(plugins, set.plugins.Schemes)
	return &server.Server{
		Clusters: clusters, Observers: observe.NewHub(), Charts: charts, Helm: helm.NewRunner(charts), Version: version,
		Guard: guard,
	}, nil
}

// newKeychain logs in to the clouds' registries as this machine.
func newKeychain() func(ctx context.Context, host string, verified bool) (username, password string, err error) {
	clouds := keychain.New(nil)
	return func(ctx context.Context, host string, verified bool) (string, string, error) {
		found, _, err := clouds.Credential(ctx, host, verified)
		return found.Username, found.Password, err
	}
}

// setUp sets what is global to the process. The collector is left alone: installing 100 releases peaks at 70 MB
// with its default, and running it twice as often costs half as much CPU again for 5 MB.
func setUp() {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	slog.SetDefault(log)
	klog.SetSlogLogger(log)
	// What a reflector cannot do is told to the brain, once; client-go would write it here every few seconds,
	// and some of its messages carry objects.
	utilruntime.ErrorHandlers = nil //nolint:reassign // the documented way
	// The name Helm's own client uses: records and objects stay interchangeable with `helm`.
	kube.ManagedFieldsManager = "helm"
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(share(runtime.GOMAXPROCS(0)))
	}
}

// share is how many CPUs the engine takes of those there are: half. Its work is many small steps between waits, and
// to wake another thread for one costs more than most of them: a quarter of all its CPU, measured on two. The brain,
// and what else is there, has the rest.
func share(available int) int { return (available + 1) / 2 }

// greet tells whoever started the engine where to find it.
func greet(out io.Writer, socket string) error {
	return json.NewEncoder(out).Encode(struct {
		Socket   string `json:"socket"`
		Version  string `json:"version"`
		Contract int    `json:"contract"`
		PID      int    `json:"pid"`
	}{socket, version, server.Contract, os.Getpid()})
}

// watchParent asks to stop when stdin closes, on SIGTERM, and when the parent dies without closing anything.
// SIGINT is the brain's to hear: Ctrl-C reaches the whole process group, and the brain stops in its own order.
func watchParent(stop chan<- string) {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop <- "stdin closed"
	}()
	parent := os.Getppid()
	signals := make(chan os.Signal, 4)
	signal.Ignore(syscall.SIGINT)
	signal.Notify(signals, syscall.SIGTERM, parentDied)
	signalParentDeath()
	go func() {
		for received := range signals {
			// The kernel means the parent's thread: as long as the process lives, nothing has happened.
			if received == parentDied && os.Getppid() == parent {
				continue
			}
			stop <- received.String()
		}
	}()
}
