package server

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// patch changes one object, or its status.
func (s *Server) patch(ctx context.Context, request *enginev1.PatchRequest) ([]byte, error) {
	at, target, err := s.target(request.GetCluster(), request.GetResource(), request.GetNamespace(), false)
	if err != nil {
		return nil, err
	}
	kind := types.MergePatchType
	switch request.GetType() {
	case enginev1.PatchRequest_APPLY:
		kind = types.ApplyYAMLPatchType // JSON is YAML
		if request.GetFieldManager() == "" {
			return nil, fault.New(enginev1.Fault_INVALID, "a server-side apply needs a field manager")
		}
	case enginev1.PatchRequest_JSON:
		kind = types.JSONPatchType
	}
	if request.GetName() == "" {
		return nil, fault.New(enginev1.Fault_INVALID, "a patch needs a name")
	}
	patch, err := target.Request(at.REST().Patch(kind), request.GetName(), request.GetSubresource())
	if err != nil {
		return nil, err
	}
	if request.GetFieldManager() != "" {
		patch = patch.Param("fieldManager", request.GetFieldManager())
	}
	if request.GetForce() {
		patch = patch.Param("force", "true")
	}
	if request.GetDryRun() {
		patch = patch.Param("dryRun", "All")
	}
	var object []byte
	if kind == types.MergePatchType {
		object, err = raw.Merge(ctx, at.HTTP(), patch, request.GetPatch())
	} else {
		object, err = raw.Do(ctx, patch.Body(request.GetPatch()))
	}
	if err != nil {
		return nil, target.Explain(err)
	}
	wrote(at, target, request.GetDryRun())
	return object, nil
}
