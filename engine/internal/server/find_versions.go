package server

import (
	"context"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/chart"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// FindVersions asks a source which versions it has; nothing is downloaded.
func (s *Server) FindVersions(ctx context.Context, request *enginev1.FindVersionsRequest) (*enginev1.FindVersionsReply, error) {
	queries := make([]chart.Query, len(request.GetQueries()))
	for i, q := range request.GetQueries() {
		queries[i] = chart.Query{Name: q.GetName(), Version: q.GetVersion(), Held: q.GetHeld()}
	}
	maxAge := time.Duration(request.GetMaxAgeMs()) * time.Millisecond
	answers, err := s.Charts.FindVersions(ctx, request.GetSource(), queries, maxAge)
	if err != nil {
		return nil, fault.ToStatus(ctx, err)
	}
	reply := &enginev1.FindVersionsReply{}
	for _, a := range answers {
		answer := &enginev1.FindVersionsReply_Answer{
			Version: a.Version, Digest: a.Digest, Tag: a.Tag, HeldFits: a.HeldFits, Newer: a.Newer, HeldDigest: a.HeldDigest,
		}
		if a.Err != nil {
			answer = &enginev1.FindVersionsReply_Answer{Fault: fault.From(a.Err).Proto()}
		}
		reply.Answers = append(reply.Answers, answer)
	}
	return reply, nil
}
