package server

import (
	"context"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/web"
)

// Http sends one request to an address that a user gave.
func (s *Server) Http(ctx context.Context, request *enginev1.HttpRequest) (*enginev1.HttpReply, error) { //nolint:revive,staticcheck // the contract's name
	reply, err := web.Send(ctx, s.Guard, request)
	return reply, fault.ToStatus(ctx, err)
}
