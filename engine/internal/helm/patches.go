package helm

import (
	"bytes"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/postrenderer"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// afterRender leaves hooks alone, as provider-helm did: Helm's default gives them to the post-renderer as well.
const afterRender = action.PostRenderStrategyNoHooks

// postRenderer changes the rendered manifest as the request asks: its patches first, then its kustomization. It is
// nil when nothing is asked, and refuses before anything is done what can never be applied.
func (a *run) postRenderer() (postrenderer.PostRenderer, error) {
	var steps pipeline
	if len(a.request.GetPatches()) > 0 {
		steps = append(steps, patcher(a.request.GetPatches()))
	}
	if len(a.request.GetKustomization()) > 0 {
		own, err := readKustomization(a.request.GetKustomization())
		if err != nil {
			return nil, err
		}
		steps = append(steps, own)
	}
	if len(steps) == 0 {
		return nil, nil
	}
	return steps, nil
}

// pipeline runs one post-renderer after the other.
type pipeline []postrenderer.PostRenderer

// Run implements postrenderer.PostRenderer.
func (p pipeline) Run(manifests *bytes.Buffer) (*bytes.Buffer, error) {
	for _, step := range p {
		changed, err := step.Run(manifests)
		if err != nil {
			return nil, err
		}
		manifests = changed
	}
	return manifests, nil
}

// patcher holds documents of the form `{patches: [...]}`, as a kustomization has them.
type patcher [][]byte

// Run implements postrenderer.PostRenderer.
func (p patcher) Run(manifests *bytes.Buffer) (*bytes.Buffer, error) {
	var kustomization types.Kustomization
	for _, document := range p {
		var read struct {
			Patches []types.Patch `json:"patches"`
		}
		if err := yaml.Unmarshal(document, &read); err != nil {
			return nil, patchFault("they are not a list of kustomize patches")
		}
		for _, patch := range read.Patches {
			if patch.Path != "" {
				return nil, patchFault("a patch must be inline, not a path")
			}
			if patch.Patch == "" {
				return nil, patchFault("a patch is empty")
			}
			kustomization.Patches = append(kustomization.Patches, patch)
		}
	}
	out, err := kustomize(kustomization, manifests)
	if err != nil {
		return nil, patchFault(err.Error())
	}
	return out, nil
}

func patchFault(why string) error {
	return fault.New(enginev1.Fault_RENDER, "the patches cannot be applied: %s", why)
}
