package server

import (
	"context"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/helm"
)

// Compare tells what applying objects of a release again would change.
func (s *Server) Compare(ctx context.Context, request *enginev1.CompareRequest) (*enginev1.CompareReply, error) {
	at, err := s.Clusters.Get(request.GetCluster())
	if err != nil {
		return nil, fault.ToStatus(ctx, err)
	}
	reply, err := helm.Compare(ctx, at, request)
	if err != nil {
		return nil, fault.ToStatus(ctx, err)
	}
	return reply, nil
}
