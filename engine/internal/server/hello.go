package server

import (
	"context"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// Hello tells versions, and refuses a brain that speaks another contract.
func (s *Server) Hello(ctx context.Context, request *enginev1.HelloRequest) (*enginev1.HelloReply, error) {
	if got := request.GetContract(); got != 0 && got != Contract {
		return nil, fault.ToStatus(ctx, fault.New(enginev1.Fault_INVALID,
			"this engine speaks contract %d, the caller %d: install matching versions", Contract, got))
	}
	return &enginev1.HelloReply{
		Contract:    Contract,
		Version:     s.Version,
		HelmVersion: common.DefaultCapabilities.HelmVersion.Version,
	}, nil
}
