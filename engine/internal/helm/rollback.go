package helm

import (
	"helm.sh/helm/v4/pkg/action"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// rollback makes a new revision with exactly the manifest of an old one.
func (a *run) rollback() error {
	to := int(a.request.GetRevision())
	if to <= 0 {
		return fault.New(enginev1.Fault_INVALID, "a rollback needs the revision to go back to")
	}
	if newest, err := a.records.newest(); err != nil {
		return err
	} else if newest != nil && newest.status().IsPending() {
		// Helm does not look, and would make a revision beside the one under way.
		return a.inProgress(newest)
	}
	target, err := a.records.release(to)
	if err != nil {
		return err
	}
	if err := a.createMissing(crdDocuments(target.Manifest)); err != nil {
		return err
	}
	configuration, err := a.configuration()
	if err != nil {
		return err
	}
	verb := action.NewRollback(configuration)
	verb.Version = to
	verb.Description = shorten(a.request.GetDescription(), action.MaxDescriptionLength)
	verb.Timeout = a.timeout()
	verb.WaitStrategy = a.strategy()
	verb.DisableHooks = a.request.GetDisableHooks()
	verb.MaxHistory = int(a.request.GetMaxHistory())
	verb.ForceConflicts = a.request.GetForceConflicts() && a.serverSide(to)
	a.kube.around = a.goAround(a.serverSide(to))
	if err := verb.Run(a.request.GetName()); err != nil {
		return err
	}
	a.notes = target.Info.Notes
	return nil
}

// inProgress is told before Helm is asked, where Helm says something else or nothing.
func (a *run) inProgress(pending *record) error {
	return fault.New(enginev1.Fault_BUSY, "another Helm operation on release %s/%s is in progress: revision %d is %s",
		a.request.GetNamespace(), a.request.GetName(), pending.revision, pending.status())
}

// shorten cuts to that many characters, since Helm refuses longer ones only here.
func shorten(text string, most int) string {
	if characters := []rune(text); len(characters) > most {
		return string(characters[:most-1]) + "…"
	}
	return text
}
