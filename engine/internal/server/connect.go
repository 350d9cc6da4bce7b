package server

import (
	"context"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// Connect gives a handle for a cluster; the API server need not be reachable.
func (s *Server) Connect(ctx context.Context, request *enginev1.ConnectRequest) (*enginev1.ConnectReply, error) {
	at, err := s.Clusters.Connect(ctx, request)
	if err != nil {
		return nil, fault.ToStatus(ctx, err)
	}
	return &enginev1.ConnectReply{Cluster: at.ID, Server: at.Server}, nil
}
