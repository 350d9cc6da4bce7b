package server

import (
	"context"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// review asks the API server who someone is, or what they may do; nothing is stored.
func (s *Server) review(ctx context.Context, request *enginev1.ReviewRequest) ([]byte, error) {
	at, target, err := s.target(request.GetCluster(), request.GetResource(), "", false)
	if err != nil {
		return nil, err
	}
	if target.Group != "authentication.k8s.io" && target.Group != "authorization.k8s.io" {
		return nil, fault.New(enginev1.Fault_INVALID, "%q is not a kind of review", target.Plural)
	}
	post, err := target.Request(at.REST().Post(), "", "")
	if err != nil {
		return nil, err
	}
	object, err := raw.Do(ctx, post.SetHeader("Content-Type", "application/json").Body(request.GetObject()))
	if err != nil {
		return nil, target.Explain(err)
	}
	return object, nil
}
