package supervise

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// restartRequests are the SIGUSR1s that ask for a new API server; there must be a listener before anybody
// may know that the cluster is ready, since an unheard one would end us.
func restartRequests() chan os.Signal {
	requests := make(chan os.Signal, 1)
	signal.Notify(requests, syscall.SIGUSR1)
	return requests
}

// stay returns when the cluster is to end; until then it replaces the API server as often as it is asked to.
func (c *cluster) stay(ctx context.Context, family *family, report *reporter, requests <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-requests:
			if err := c.restartAPIServer(ctx, family, report); err != nil {
				return err
			}
		}
	}
}

// restartAPIServer ends the API server as a crash would, and starts another on the same port and data.
func (c *cluster) restartAPIServer(ctx context.Context, family *family, report *reporter) error {
	report.progress("restarting kube-apiserver")
	family.remove("kube-apiserver")
	if err := family.start("kube-apiserver", c.apiServerArguments()); err != nil {
		return err
	}
	if err := c.client.waitForAPI(ctx); err != nil {
		return err
	}
	// Whoever asked waits for this.
	record := c.home.record
	record.Restarts++
	if err := c.home.save(record); err != nil {
		return err
	}
	report.progress("kube-apiserver is back")
	return nil
}
