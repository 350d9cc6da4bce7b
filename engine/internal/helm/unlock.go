package helm

import (
	"errors"
	"fmt"

	"helm.sh/helm/v4/pkg/release/common"
	"helm.sh/helm/v4/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// unlock clears a pending record whose owner is gone, if it is pending still. A first install's record is
// deleted, so that installing again is an install; any other becomes failed, so that an upgrade may follow.
func (a *run) unlock() error {
	// Whoever wrote since the record was read is alive after all.
	a.records.conditional = true
	revision := int(a.request.GetRevision())
	rel, err := a.records.release(revision)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !rel.Info.Status.IsPending() {
		return nil
	}
	if rel.Info.Status == common.StatusPendingInstall && revision == 1 {
		_, err := a.records.Delete(recordName(rel.Name, revision))
		return unlessMoved(err)
	}
	description := a.request.GetDescription()
	if description == "" {
		description = fmt.Sprintf("was left %s by an operation that ended without a result", rel.Info.Status)
	}
	rel.SetStatus(common.StatusFailed, description)
	return unlessMoved(a.records.Update(recordName(rel.Name, revision), rel))
}

func unlessMoved(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
