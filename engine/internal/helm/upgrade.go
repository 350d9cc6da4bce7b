package helm

import (
	"context"

	"helm.sh/helm/v4/pkg/action"
	rspb "helm.sh/helm/v4/pkg/release/v1"
)

// upgrade makes the next revision from chart and values alone: what an earlier revision was given is forgotten.
func (a *run) upgrade() error {
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
	// Objects of a kind that is gone are gone: an old manifest that names one must not block the new one.
	a.kube.forgiveMissingKinds = true
	verb := action.NewUpgrade(configuration)
	verb.Namespace = a.request.GetNamespace()
	verb.Description = a.request.GetDescription()
	verb.Labels = a.request.GetLabels()
	verb.Timeout = a.timeout()
	verb.WaitStrategy = a.strategy()
	verb.DisableHooks = a.request.GetDisableHooks()
	verb.TakeOwnership = a.request.GetTakeOwnership()
	verb.MaxHistory = int(a.request.GetMaxHistory())
	verb.ResetValues = true // or empty values would bring the old ones back
	verb.SkipCRDs = true
	// Helm refuses to force conflicts where it applies on the client's side, and there are none there.
	verb.ForceConflicts = a.request.GetForceConflicts() && newest != nil && a.serverSide(newest.revision)
	a.kube.around = a.goAround(newest != nil && a.serverSide(newest.revision))
	verb.PostRenderer, verb.PostRenderStrategy = changes, afterRender
	made, err := verb.RunWithContext(context.Background(), a.request.GetName(), chart, values)
	if rel, ok := made.(*rspb.Release); ok && rel != nil && err == nil {
		a.notes = rel.Info.Notes
	}
	return err
}

// serverSide says how that revision's objects were applied, and with Helm's "auto" the next one's will be.
func (a *run) serverSide(revision int) bool {
	rel, err := a.records.release(revision)
	return err == nil && rel.ApplyMethod == string(rspb.ApplyMethodServerSideApply)
}
