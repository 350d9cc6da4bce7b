package server

import (
	"context"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/expression"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// CheckExpressions refuses what is not CEL, by the name of the field it is in.
func (s *Server) CheckExpressions(ctx context.Context, request *enginev1.CheckExpressionsRequest) (*enginev1.CheckExpressionsReply, error) {
	for _, one := range request.GetExpressions() {
		if _, err := expression.Compile(one.GetText()); err != nil {
			return nil, fault.ToStatus(ctx, fault.New(enginev1.Fault_INVALID, "%s: %s", one.GetOrigin(), err))
		}
	}
	return &enginev1.CheckExpressionsReply{}, nil
}
