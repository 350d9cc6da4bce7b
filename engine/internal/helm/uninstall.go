package helm

import (
	"errors"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/storage/driver"
)

// uninstall removes a release and returns when its objects are gone. What is gone already is no failure. If an
// object stays, so does the record, as `uninstalling`: Helm alone would forget the object.
func (a *run) uninstall() error {
	configuration, err := a.configuration()
	if err != nil {
		return err
	}
	a.kube.forgiveMissingKinds = true
	a.kube.keepRecordUntilGone = true
	verb := action.NewUninstall(configuration)
	verb.Timeout = a.timeout()
	verb.WaitStrategy = kube.StatusWatcherStrategy
	verb.DisableHooks = a.request.GetDisableHooks()
	verb.Description = a.request.GetDescription()
	// Not IgnoreNotFound: with it Helm takes every failure to read the records for "not found".
	_, err = verb.Run(a.request.GetName())
	switch {
	case a.kube.stuck != nil:
		return a.kube.stuck
	case len(a.kube.deleteErrors) > 0:
		return errors.Join(a.kube.deleteErrors...) // Helm only says that there were some
	case errors.Is(err, driver.ErrReleaseNotFound):
		return nil
	}
	return err
}
