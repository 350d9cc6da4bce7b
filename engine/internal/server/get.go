package server

import (
	"context"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// get reads one object.
func (s *Server) get(ctx context.Context, request *enginev1.GetRequest) ([]byte, error) {
	at, target, err := s.target(request.GetCluster(), request.GetResource(), request.GetNamespace(), request.GetMetadataOnly())
	if err != nil {
		return nil, err
	}
	object, err := raw.Get(ctx, at.REST(), target, request.GetName())
	if err != nil {
		return nil, target.Explain(err)
	}
	return object, nil
}
