package server

import (
	"context"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/helm"
)

// History gives the decoded records of a release, oldest first.
func (s *Server) History(ctx context.Context, request *enginev1.HistoryRequest) (*enginev1.HistoryReply, error) {
	at, err := s.Clusters.Get(request.GetCluster())
	if err != nil {
		return nil, fault.ToStatus(ctx, err)
	}
	records, err := helm.History(ctx, at, request)
	if err != nil {
		return nil, fault.ToStatus(ctx, err)
	}
	return &enginev1.HistoryReply{Records: records}, nil
}
