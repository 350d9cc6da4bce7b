package helm

import (
	"context"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/release/common"
	rspb "helm.sh/helm/v4/pkg/release/v1"
)

// install makes the first revision. Over a release that was uninstalled with its history kept it makes the next.
func (a *run) install() error {
	newest, err := a.records.newest()
	if err != nil {
		return err
	}
	if newest != nil && newest.status().IsPending() {
		return a.inProgress(newest)
	}
	chart, values, err := a.chartAndValues()
	if err != nil {
		return err
	}
	changes, err := a.postRenderer()
	if err != nil {
		return err
	}
	if err := a.createCRDs(values); err != nil {
		return err
	}
	configuration, err := a.configuration()
	if err != nil {
		return err
	}
	verb := action.NewInstall(configuration)
	verb.ReleaseName = a.request.GetName()
	verb.Namespace = a.request.GetNamespace()
	verb.Description = a.request.GetDescription()
	verb.Labels = a.request.GetLabels()
	verb.Timeout = a.timeout()
	verb.WaitStrategy = a.strategy()
	verb.DisableHooks = a.request.GetDisableHooks()
	verb.TakeOwnership = a.request.GetTakeOwnership()
	verb.ForceConflicts = a.request.GetForceConflicts()
	verb.SkipCRDs = true // ours to do: see crds.go
	verb.Replace = newest != nil && newest.status() == common.StatusUninstalled
	verb.PostRenderer, verb.PostRenderStrategy = changes, afterRender
	made, err := verb.RunWithContext(context.Background(), chart, values)
	if rel, ok := made.(*rspb.Release); ok && rel != nil && err == nil {
		a.notes = rel.Info.Notes
	}
	return err
}
