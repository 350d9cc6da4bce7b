package helm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"helm.sh/helm/v4/pkg/kube"
	rspb "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
)

// preflight asks the API server about every object of the revision about to be recorded, without writing any:
// one that it refuses makes no revision and runs no hook.
func (a *run) preflight(rel *rspb.Release) error {
	if !a.request.GetPreflight() {
		return nil
	}
	list, err := a.kube.Client.Build(strings.NewReader(rel.Manifest), false)
	if err != nil {
		return err
	}
	serverSide := rel.ApplyMethod == string(rspb.ApplyMethodServerSideApply)
	for _, info := range list {
		if err := a.dryRun(info, serverSide); err != nil && !comesFirst(list, err) {
			return fmt.Errorf("preflight of object %s/%s %s: %w",
				info.Namespace, info.Name, info.Mapping.GroupVersionKind.String(), err)
		}
	}
	return nil
}

func (a *run) dryRun(info *resource.Info, serverSide bool) error {
	object, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	a.mark(object)
	if serverSide && info.Name != "" {
		err := a.rehearseApply(info, a.request.GetForceConflicts())
		if a.kube.around != nil && (apierrors.IsConflict(err) || apierrors.IsInvalid(err)) {
			return a.rehearseAround(info)
		}
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	_, err := a.kube.objects(info).Create(ctx, object, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict,
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (a *run) rehearseApply(info *resource.Info, force bool) error {
	data, err := json.Marshal(info.Object)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	_, err = a.kube.objects(info).Patch(ctx, info.Name, types.ApplyPatchType, data, metav1.PatchOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager, Force: &force, FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

// rehearseAround tells of what would still be refused if the object were applied without what is left to others:
// a conflict that lasts makes no revision each time it is tried again.
func (a *run) rehearseAround(info *resource.Info) error {
	rest := *info
	rest.Object = info.Object.DeepCopyObject()
	if err := a.kube.leaveOut(&rest); err != nil {
		return err
	}
	err := a.rehearseApply(&rest, a.kube.around.GetForceRest())
	if apierrors.IsInvalid(err) {
		return a.rehearseSwapped(&rest, err)
	}
	return err
}

// mark adds what Helm adds to everything it applies: an admission rule may look at it.
func (a *run) mark(object *unstructured.Unstructured) {
	labels := maps.Clone(object.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels["app.kubernetes.io/managed-by"] = "Helm"
	object.SetLabels(labels)
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["meta.helm.sh/release-name"] = a.request.GetName()
	annotations["meta.helm.sh/release-namespace"] = a.request.GetNamespace()
	object.SetAnnotations(annotations)
}

// comesFirst says whether the refusal is only that a namespace is missing which the same manifest brings.
func comesFirst(list kube.ResourceList, err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	for _, info := range list {
		if info.Mapping.GroupVersionKind.Kind == "Namespace" &&
			strings.Contains(err.Error(), fmt.Sprintf("namespaces %q not found", info.Name)) {
			return true
		}
	}
	return false
}
