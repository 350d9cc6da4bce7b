package server

import (
	"google.golang.org/grpc"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// Run does one Helm action: progress, then exactly one outcome. A call the caller leaves goes on until Helm has
// finished what it writes; only its waits end.
func (s *Server) Run(request *enginev1.RunRequest, stream grpc.ServerStreamingServer[enginev1.RunEvent]) error {
	at, err := s.Clusters.Get(request.GetCluster())
	if err != nil {
		return fault.ToStatus(stream.Context(), err)
	}
	progress := func(progress *enginev1.Progress) {
		// A caller that has left is no reason to stop; the stream's context ends the waits.
		_ = stream.Send(&enginev1.RunEvent{Event: &enginev1.RunEvent_Progress{Progress: progress}})
	}
	outcome, err := s.Helm.Run(stream.Context(), at, request, progress)
	if err != nil {
		return fault.ToStatus(stream.Context(), err)
	}
	return stream.Send(&enginev1.RunEvent{Event: &enginev1.RunEvent_Outcome{Outcome: outcome}})
}
