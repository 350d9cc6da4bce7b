package server

import (
	"context"

	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/helm"
)

// Render renders a chart, for a cluster or for none, and writes nothing.
func (s *Server) Render(ctx context.Context, request *enginev1.RenderRequest) (*enginev1.RenderReply, error) {
	var at *cluster.Cluster
	if request.GetCluster() != "" {
		var err error
		if at, err = s.Clusters.Get(request.GetCluster()); err != nil {
			return nil, fault.ToStatus(ctx, err)
		}
	}
	reply, err := helm.Render(ctx, at, s.Charts, request)
	return reply, fault.ToStatus(ctx, err)
}
