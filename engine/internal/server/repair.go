package server

import (
	"context"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// Repair applies objects of a release again.
func (s *Server) Repair(ctx context.Context, request *enginev1.RepairRequest) (*enginev1.RepairReply, error) {
	at, err := s.Clusters.Get(request.GetCluster())
	if err != nil {
		return nil, fault.ToStatus(ctx, err)
	}
	reply, err := s.Helm.Repair(ctx, at, request)
	if err != nil {
		return nil, fault.ToStatus(ctx, err)
	}
	return reply, nil
}
