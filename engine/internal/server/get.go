package server

import (
	"context"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// Get reads one object.
func (s *Server) Get(ctx context.Context, request *enginev1.GetRequest) (*enginev1.ObjectReply, error) {
	at, target, err := s.target(request.GetCluster(), request.GetResource(), request.GetNamespace(), request.GetMetadataOnly())
	if err != nil {
		return nil, fault.ToStatus(ctx, err)
	}
	object, err := raw.Get(ctx, at.REST(), target, request.GetName())
	if err != nil {
		return nil, fault.ToStatus(ctx, target.Explain(err))
	}
	return &enginev1.ObjectReply{Object: object}, nil
}
