package server

import (
	"context"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

const (
	maxChanges = 256
	// maxBytes keeps a batch of large objects far below the message limit.
	maxBytes = 4 << 20
	// linger is how long a batch waits for company.
	linger = 3 * time.Millisecond
)

// watch forwards a resource's objects: a snapshot, then changes, until the caller leaves.
func (s *Server) watch(ctx context.Context, request *enginev1.WatchRequest, send func(*enginev1.WatchBatch)) error {
	at, target, err := s.target(request.GetCluster(), request.GetResource(), request.GetNamespace(), request.GetMetadataOnly())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &forwarder{ctx: ctx, target: target, items: make(chan item, maxChanges)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		raw.Reflect(ctx, &raw.ListWatch{
			Client: at.REST(), Target: target, Decode: raw.Keep,
			LabelSelector: request.GetLabelSelector(), FieldSelector: request.GetFieldSelector(),
			Failed: f.failed, Worked: f.worked,
		}, f)
	}()
	forward(ctx, f.items, send)
	cancel()
	<-done
	return ctx.Err()
}

// forward batches what the reflector found, until the caller leaves: whatever comes within a few milliseconds travels
// together.
func forward(ctx context.Context, items <-chan item, send func(*enginev1.WatchBatch)) {
	timer := time.NewTimer(linger)
	timer.Stop()
	var held *item
	for {
		var b batch
		if held != nil {
			b.add(*held)
			held = nil
		} else {
			select {
			case <-ctx.Done():
				return
			case first := <-items:
				b.add(first)
			}
		}
		timer.Reset(linger)
	fill:
		for !b.full() {
			select {
			case <-ctx.Done():
				return
			case next := <-items:
				if next.reset { // is read before a message's changes, so it cannot follow some
					held = &next
					break fill
				}
				b.add(next)
			case <-timer.C:
				break fill
			}
		}
		timer.Stop()
		send(&b.message)
	}
}

// batch is one message being filled.
type batch struct {
	message enginev1.WatchBatch
	size    int
	closed  bool
}

func (b *batch) add(i item) {
	if i.change != nil {
		b.message.Changes = append(b.message.Changes, i.change)
		b.size += len(i.change.Object)
	}
	b.message.Synced = b.message.Synced || i.synced
	b.message.Recovered = b.message.Recovered || i.recovered
	b.message.Reset_ = b.message.Reset_ || i.reset
	if i.fault != nil {
		b.message.Fault = i.fault
	}
	// A message is read as reset, changes, synced, fault: nothing may follow the last three.
	b.closed = i.synced || i.fault != nil || i.recovered
}

func (b *batch) full() bool {
	return b.closed || len(b.message.Changes) >= maxChanges || b.size >= maxBytes
}
