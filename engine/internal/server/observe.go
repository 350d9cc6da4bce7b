package server

import (
	"errors"
	"io"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/observe"
)

// Observe tells of every release record and object of a cluster, until the caller leaves or there is more to see.
func (s *Server) Observe(stream enginev1.Engine_ObserveServer) error {
	ctx := stream.Context()
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	at, err := s.Clusters.Get(first.GetCluster())
	if err != nil {
		return fault.ToStatus(ctx, err)
	}
	subscription := s.Observers.Subscribe(at)
	defer subscription.Close()
	subscription.Attend(first.GetAttend())
	go listen(stream, subscription)
	for {
		batch, err := subscription.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil // the caller opens another, which sees more
		}
		if err != nil {
			return fault.ToStatus(ctx, err)
		}
		if err := stream.Send(batch); err != nil {
			return err
		}
	}
}

// listen ends with the stream, or when the caller has nothing more to say.
func listen(stream enginev1.Engine_ObserveServer, subscription *observe.Subscription) {
	for {
		request, err := stream.Recv()
		if err != nil {
			return
		}
		subscription.Attend(request.GetAttend())
	}
}
