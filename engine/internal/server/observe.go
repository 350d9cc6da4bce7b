package server

import (
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// Observe tells of every release record and object of a cluster, until the caller leaves.
func (s *Server) Observe(request *enginev1.ObserveRequest, stream enginev1.Engine_ObserveServer) error {
	ctx := stream.Context()
	at, err := s.Clusters.Get(request.GetCluster())
	if err != nil {
		return fault.ToStatus(ctx, err)
	}
	subscription := s.Observers.Subscribe(at)
	defer subscription.Close()
	for {
		batch, err := subscription.Next(ctx)
		if err != nil {
			return fault.ToStatus(ctx, err)
		}
		if err := stream.Send(batch); err != nil {
			return err
		}
	}
}
