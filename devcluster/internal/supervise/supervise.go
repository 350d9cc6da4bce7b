// Package supervise runs one development cluster: it makes the certificates, starts every component as
// a child process, says when a pod could run, and stops everything together.
//
// One rule to keep: whatever happens to this process, no child outlives it.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// errStopRequested is the cause of a wanted end: a signal, or the parent closing our standard input.
var errStopRequested = errors.New("stop requested")

// Main is `devcluster up`: it returns when the cluster has stopped, with an error unless that was wanted.
func Main() error {
	options, err := parseOptions(os.Args[1:])
	if err != nil {
		return err
	}
	// A parent that stops reading must not end us; writes to it then fail, which is harmless.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	report := &reporter{out: os.Stdout}
	defer report.close()
	if err := run(options, report); err != nil {
		err = explain(err, options.dir)
		report.failed(err)
		return err
	}
	return nil
}

// run owns the cluster from the lock on its directory to the end of its last child.
func run(options options, report *reporter) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	stopOnSignal(cancel)
	if options.stopOnStdinEOF {
		stopOnEOF(os.Stdin, cancel)
	}

	home, err := openHome(options.dir, options.name)
	if err != nil {
		return err
	}
	defer home.close()
	if err := report.alsoTo(home.path("logs", "supervisor.log")); err != nil {
		return err
	}
	// Sockets are named relative to the directory: a path to one may not exceed 107 bytes.
	if err := os.Chdir(home.dir); err != nil {
		return err
	}
	cluster, err := prepare(home, options, report)
	if err != nil {
		return err
	}
	defer cluster.close()

	family := newFamily(home, options.binaries, cancel)
	err = cluster.start(ctx, family, report)
	if err == nil {
		requests := restartRequests()
		report.ready(home, cluster.server())
		err = cluster.stay(ctx, family, report, requests)
	}
	report.progress("stopping")
	grace := 5 * time.Second
	if options.ephemeral {
		// Nothing is worth saving, so nothing is worth waiting for.
		grace = 0
	}
	family.stop(grace)
	if errors.Is(err, errStopRequested) {
		return nil
	}
	return cluster.data.placed(err)
}

// stopOnSignal turns the first SIGTERM, SIGINT or SIGHUP into a stop.
func stopOnSignal(cancel context.CancelCauseFunc) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() {
		<-signals
		cancel(errStopRequested)
	}()
}

// stopOnEOF stops when the parent is gone, however it went: the kernel closes its end of the pipe.
func stopOnEOF(stdin io.Reader, cancel context.CancelCauseFunc) {
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel(errStopRequested)
	}()
}

// cluster is what one start needs besides its directory: a port nobody else gets, and a place for data.
type cluster struct {
	home    *home
	options options
	port    *reservedPort
	data    *dataDir
	client  *client
}

// prepare makes everything that must exist before the first component starts.
func prepare(home *home, options options, report *reporter) (*cluster, error) {
	port, err := reservePort(options.port, home.record.Port)
	if err != nil {
		return nil, err
	}
	if options.port == 0 && home.record.Port != 0 && home.record.Port != port.number {
		report.progress(fmt.Sprintf("port %d is not to be had, using %d", home.record.Port, port.number))
	}
	data, err := openData(home, options.ephemeral, report)
	if err != nil {
		port.close()
		return nil, err
	}
	cluster := &cluster{home: home, options: options, port: port, data: data}
	if err := cluster.write(); err != nil {
		cluster.close()
		return nil, err
	}
	return cluster, nil
}

// write puts certificates, kubeconfigs and component configuration into the directory.
func (c *cluster) write() error {
	record := c.home.record
	record.Port = c.port.number
	record.PID = os.Getpid()
	record.Server = c.server()
	record.Kubeconfig = c.home.path("kubeconfig")
	record.Ephemeral, record.Data = c.options.ephemeral, c.data.place
	record.Restarts = 0
	if err := c.home.save(record); err != nil {
		return err
	}
	identities, err := ensureCertificates(c.home.path("certificates"), time.Now())
	if err != nil {
		return err
	}
	if err := writeKubeconfigs(c.home, record, identities); err != nil {
		return err
	}
	if err := writeConfigs(c.home); err != nil {
		return err
	}
	c.client, err = newClient(c.server(), identities)
	return err
}

func (c *cluster) server() string { return fmt.Sprintf("https://127.0.0.1:%d", c.port.number) }

func (c *cluster) close() {
	c.port.close()
	c.data.close()
}

// start brings the components up, each as early as the one it depends on allows.
func (c *cluster) start(ctx context.Context, family *family, report *reporter) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.readyTimeout,
		fmt.Errorf("the cluster was not ready within %s", c.options.readyTimeout))
	defer cancel()
	// Left over from a killed run, they would look like a server that refuses connections.
	for _, socket := range []string{etcdSocket, etcdPeerSocket} {
		_ = os.Remove(c.home.path(socket))
	}

	report.progress("starting etcd")
	if err := family.start("etcd", c.etcdArguments()); err != nil {
		return err
	}
	if err := waitForSocket(ctx, etcdSocket); err != nil {
		return err
	}
	report.progress("starting kube-apiserver")
	if err := family.start("kube-apiserver", c.apiServerArguments()); err != nil {
		return err
	}
	if err := c.client.waitForAnswer(ctx); err != nil {
		return err
	}
	// The API server waits a second before it makes its roles. KWOK needs none; the others would give up
	// on a busy machine if they started now.
	report.progress("starting kwok")
	if err := family.start("kwok", c.kwokArguments()); err != nil {
		return err
	}
	if err := c.client.waitForAPI(ctx); err != nil {
		return err
	}
	report.progress("starting kube-controller-manager and kube-scheduler")
	if err := family.start("kube-controller-manager", c.controllerManagerArguments()); err != nil {
		return err
	}
	if err := family.start("kube-scheduler", c.schedulerArguments()); err != nil {
		return err
	}
	if err := c.client.createBasics(ctx, c.options.nodes); err != nil {
		return err
	}
	report.progress("waiting for a pod to run")
	return c.client.waitUntilUsable(ctx, c.options.nodes)
}
