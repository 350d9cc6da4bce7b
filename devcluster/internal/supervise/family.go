package supervise

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// memoryLimits are many times what a small cluster needs (in all 370 MiB): near its limit a component collects
// garbage harder instead of growing on. One whose live data passes its limit collects all the time, so they leave
// room for thousands of releases.
var memoryLimits = map[string]string{
	"etcd":                    "1GiB",
	"kube-apiserver":          "3GiB",
	"kube-controller-manager": "1GiB",
	"kube-scheduler":          "500MiB",
	"kwok":                    "1GiB",
}

// family is the running components; if one ends by itself, it cancels everything.
type family struct {
	home     *home
	binaries map[string]string
	cancel   context.CancelCauseFunc
	spawn    chan func()
	children []*child
}

type child struct {
	name     string
	command  *exec.Cmd
	done     chan struct{}
	stopping atomic.Bool
}

func newFamily(home *home, binaries map[string]string, cancel context.CancelCauseFunc) *family {
	family := &family{home: home, binaries: binaries, cancel: cancel, spawn: make(chan func())}
	go func() {
		// A parent-death signal follows the thread that started the child. This one never ends.
		runtime.LockOSThread()
		for start := range family.spawn {
			start()
		}
	}()
	return family
}

// start runs a component with its own log file; it returns once the process exists.
func (f *family) start(name string, arguments []string) error {
	log, err := os.OpenFile(f.home.path("logs", name+".log"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	command, err := f.command(name, arguments)
	if err != nil {
		return err
	}
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = childAttributes()
	command.Env = childEnvironment(name, f.home)
	started := make(chan error)
	f.spawn <- func() { started <- command.Start() }
	if err := <-started; err != nil {
		return fmt.Errorf("cannot start %s: %w", name, err)
	}
	child := &child{name: name, command: command, done: make(chan struct{})}
	f.children = append(f.children, child)
	go f.watch(child)
	return nil
}

// childEnvironment is ours without the variables by which a component takes configuration.
func childEnvironment(name string, home *home) []string {
	environment := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		for _, prefix := range []string{"ETCD_", "KWOK_", "KUBECONFIG=", "GOGC=", "GOMEMLIMIT="} {
			if strings.HasPrefix(variable, prefix) {
				return true
			}
		}
		return false
	})
	return append(environment, "GOGC=100", "GOMEMLIMIT="+memoryLimits[name], "KWOK_WORKDIR="+home.path("kwok"))
}

// command is ourselves under the component's name, unless another program was given for it.
func (f *family) command(name string, arguments []string) (*exec.Cmd, error) {
	if path, given := f.binaries[name]; given {
		return exec.Command(path, arguments...), nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(self, append([]string{name}, arguments...)...), nil
}

func (f *family) watch(child *child) {
	err := child.command.Wait()
	close(child.done)
	if child.stopping.Load() {
		return
	}
	reason := "it ended by itself"
	if err != nil {
		reason = err.Error()
	}
	f.cancel(&componentError{component: child.name, reason: reason, tail: f.tail(child.name)})
}

// tail returns the last lines of a component's log.
func (f *family) tail(name string) []string {
	content, err := os.ReadFile(f.home.path("logs", name+".log"))
	if err != nil {
		return nil
	}
	return lastWords(string(content))
}

// stopOrder: clients first, and the API server before etcd, without which it would hang.
var stopOrder = []string{"kwok", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"}

// stop ends the components that run.
func (f *family) stop(grace time.Duration) {
	for _, name := range stopOrder {
		for _, child := range f.children {
			if child.name == name {
				child.stop(grace)
			}
		}
	}
}

// remove ends a component at once, for another to take its place.
func (f *family) remove(name string) {
	f.children = slices.DeleteFunc(f.children, func(child *child) bool {
		if child.name != name {
			return false
		}
		child.stop(0)
		return true
	})
}

func (c *child) stop(grace time.Duration) {
	c.stopping.Store(true)
	if grace > 0 {
		_ = c.command.Process.Signal(syscall.SIGTERM)
		select {
		case <-c.done:
			return
		case <-time.After(grace):
		}
	}
	_ = c.command.Process.Kill()
	<-c.done
}
