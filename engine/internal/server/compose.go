package server

import (
	"context"

	"github.com/pilothouse-dev/pilothouse/engine/internal/compose"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// Compose puts values and patches together; it asks no cluster.
func (s *Server) Compose(ctx context.Context, request *enginev1.ComposeRequest) (*enginev1.ComposeReply, error) {
	values, err := compose.Values(request.GetDocuments(), request.GetAssignments())
	if err != nil {
		return nil, fault.ToStatus(ctx, err)
	}
	sum, patches, err := compose.Patches(request.GetPatches())
	if err != nil {
		return nil, fault.ToStatus(ctx, err)
	}
	return &enginev1.ComposeReply{Values: values, PatchesSha: sum, Patches: patches}, nil
}
