package helm

import (
	"fmt"

	"helm.sh/helm/v4/pkg/release/common"
	rspb "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/util/retry"

	"github.com/pilothouse-dev/pilothouse/engine/internal/drift"
)

// handOver makes ours what another program applied of a release that it kept until now. It happens before the
// revision is recorded: the preflight meets the objects as the apply will, and an action that fails in between
// finds what is deployed still not ours, and does it again. Of an object nothing changes but whose its fields are.
func (a *run) handOver(rel *rspb.Release) error {
	if rel.ApplyMethod != string(rspb.ApplyMethodServerSideApply) {
		return nil
	}
	foreign, err := a.records.foreign()
	if err != nil || !foreign {
		return err
	}
	list, err := a.kube.build(rel.Manifest, true)
	if err != nil {
		return err
	}
	return a.inherit(list...)
}

// foreign says whether somebody else deployed what is deployed. Ours costs nothing to ask for: Helm's records are
// listed by every action.
func (r *records) foreign() (bool, error) {
	if err := r.list(); err != nil {
		return false, err
	}
	var held *record
	if deployed := r.matching(string(common.StatusDeployed)); len(deployed) > 0 {
		held = deployed[len(deployed)-1]
	} else if all := r.matching(""); len(all) > 0 {
		held = all[0] // nothing was ever deployed, or nothing is left of it: who began
	}
	return held != nil && stampOf(held.meta.Annotations, digestAnnotation, held.revision) == "" &&
		stampOf(held.meta.Annotations, ownerAnnotation, held.revision) == "", nil
}

// inherit takes over what other programs that keep Helm releases applied of objects that are there.
func (a *run) inherit(list ...*resource.Info) error {
	for _, info := range list {
		if info.Name == "" {
			continue
		}
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return a.inheritOne(info) })
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("taking over the fields of object %s/%s %s: %w",
				info.Namespace, info.Name, info.Mapping.GroupVersionKind.String(), err)
		}
	}
	return nil
}

func (a *run) inheritOne(info *resource.Info) error {
	live, err := a.live(info)
	if err != nil || !a.marked(live) {
		return err
	}
	entries, err := drift.Inherit(live)
	if err != nil || entries == nil {
		return err
	}
	_, err = a.kube.writeManagers(info, entries, live.GetResourceVersion())
	return err
}

// marked tells whether an object is said to be this release's; one that another release took is not to be had.
func (a *run) marked(live metav1.Object) bool {
	marks := live.GetAnnotations()
	return marks["meta.helm.sh/release-name"] == a.request.GetName() &&
		marks["meta.helm.sh/release-namespace"] == a.request.GetNamespace()
}
