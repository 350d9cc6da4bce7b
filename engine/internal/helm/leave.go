package helm

import (
	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pilothouse-dev/pilothouse/engine/internal/drift"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

// force says whether fields of other managers are taken. Helm refuses that where it applies on the client's side,
// and there are no conflicts there.
func (a *run) force(serverSide bool) bool {
	if !serverSide || !a.request.GetForceConflicts() {
		return false
	}
	a.leave = map[inventory.Ref][]string{}
	for _, part := range a.request.GetLeave() {
		a.leave[refOf(part.GetRef())] = part.GetLeave()
	}
	return true
}

// leaveToOthers takes out of objects about to be applied by force what is to stay with whoever has it.
func (a *run) leaveToOthers(list kube.ResourceList) error {
	for _, info := range list {
		pointers := a.leave[infoRef(info)]
		object, ok := info.Object.(*unstructured.Unstructured)
		if len(pointers) == 0 || !ok {
			continue
		}
		live, err := a.live(info)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		for _, pointer := range pointers {
			drift.Leave(object.Object, live, pointer)
		}
	}
	return nil
}
