package helm

import (
	"bytes"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/postrenderer"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// postRenderer applies the request's patches to the manifest and, as provider-helm did, not to hooks.
func (a *run) postRenderer() (postrenderer.PostRenderer, action.PostRenderStrategy) {
	if len(a.request.GetPatches()) == 0 {
		return nil, action.PostRenderStrategyNoHooks
	}
	return patcher(a.request.GetPatches()), action.PostRenderStrategyNoHooks
}

// patcher holds documents of the form `{patches: [...]}`, as a kustomization has them.
type patcher [][]byte

// Run implements postrenderer.PostRenderer, in memory: nothing is read from disk or network.
func (p patcher) Run(manifests *bytes.Buffer) (*bytes.Buffer, error) {
	kustomization := types.Kustomization{
		TypeMeta:  types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources: []string{"manifests.yaml"},
	}
	for _, document := range p {
		var patches struct {
			Patches []types.Patch `json:"patches"`
		}
		if err := yaml.Unmarshal(document, &patches); err != nil {
			return nil, patchFault("they are not a list of kustomize patches")
		}
		for _, patch := range patches.Patches {
			if patch.Path != "" {
				return nil, patchFault("a patch must be inline, not a path")
			}
			kustomization.Patches = append(kustomization.Patches, patch)
		}
	}
	encoded, err := yaml.Marshal(kustomization)
	if err != nil {
		return nil, patchFault(err.Error())
	}
	files := filesys.MakeFsInMemory()
	if err := files.WriteFile("kustomization.yaml", encoded); err != nil {
		return nil, patchFault(err.Error())
	}
	if err := files.WriteFile("manifests.yaml", manifests.Bytes()); err != nil {
		return nil, patchFault(err.Error())
	}
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	options.Reorder = krusty.ReorderOptionNone
	made, err := krusty.MakeKustomizer(options).Run(files, ".")
	if err != nil {
		return nil, patchFault(err.Error())
	}
	out, err := made.AsYaml()
	if err != nil {
		return nil, patchFault(err.Error())
	}
	return bytes.NewBuffer(out), nil
}

func patchFault(why string) error {
	return fault.New(enginev1.Fault_RENDER, "the patches cannot be applied: %s", strings.TrimSpace(redact(why)))
}
