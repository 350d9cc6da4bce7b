package server

import (
	"context"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// ResolveChart finds a chart and takes it into the cache; the digest it gives is what Render and Run take.
func (s *Server) ResolveChart(ctx context.Context, request *enginev1.ResolveChartRequest) (*enginev1.ResolveChartReply, error) {
	if request.GetSource() == nil {
		return nil, fault.ToStatus(ctx, fault.New(enginev1.Fault_INVALID, "the request names no chart source"))
	}
	info, err := s.Charts.Resolve(ctx, request.GetSource())
	if err != nil {
		return nil, fault.ToStatus(ctx, err)
	}
	return &enginev1.ResolveChartReply{
		Name:        info.Name,
		Version:     info.Version,
		Digest:      info.Digest,
		AppVersion:  info.AppVersion,
		Description: info.Description,
		HasCrds:     info.HasCRDs,
		Type:        info.Type,
		Republished: info.Republished,
		Warnings:    info.Warnings,
	}, nil
}
