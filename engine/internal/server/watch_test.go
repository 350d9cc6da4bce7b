package server

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// batches runs what happens to a reflector's store through forward, until the end mark.
func batches(t *testing.T, happen func(*forwarder)) []*enginev1.WatchBatch {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f := &forwarder{ctx: ctx, items: make(chan item, maxChanges)}
	go func() {
		happen(f)
		f.push(item{fault: &enginev1.Fault{Message: "end"}})
	}()
	var got []*enginev1.WatchBatch
	forward(ctx, f.items, func(b *enginev1.WatchBatch) {
		got = append(got, proto.Clone(b).(*enginev1.WatchBatch))
		if b.GetFault().GetMessage() == "end" {
			cancel()
		}
	})
	return got
}

func objects(count, size int) []any {
	out := make([]any, count)
	for i := range out {
		out[i] = &raw.Object{Head: raw.Head{Name: fmt.Sprint(i)}, JSON: make([]byte, size)}
	}
	return out
}

func TestSnapshotIsChunked(t *testing.T) {
	got := batches(t, func(f *forwarder) { _ = f.Replace(objects(600, 10), "") })
	total, synced := 0, 0
	for i, b := range got {
		total += len(b.GetChanges())
		if len(b.GetChanges()) > maxChanges || b.GetReset_() {
			t.Fatalf("batch %d: %d changes, reset %v", i, len(b.GetChanges()), b.GetReset_())
		}
		if b.GetSynced() {
			synced++
			if total != 600 {
				t.Fatalf("synced after %d", total)
			}
		}
	}
	if synced != 1 {
		t.Fatalf("synced %d times", synced)
	}
}

func TestLargeObjectsTravelInSmallBatches(t *testing.T) {
	for _, b := range batches(t, func(f *forwarder) { _ = f.Replace(objects(20, 1<<20), "") }) {
		if size := proto.Size(b); size > maxBytes+2<<20 {
			t.Fatalf("a batch of %d bytes", size)
		}
	}
}

func TestResetComesBeforeItsSnapshot(t *testing.T) {
	got := batches(t, func(f *forwarder) {
		_ = f.Replace(objects(1, 1), "")
		_ = f.Add(objects(1, 2)[0])
		_ = f.Replace(objects(1, 3), "")
	})
	for _, b := range got {
		if b.GetReset_() {
			if len(b.GetChanges()) == 0 || len(b.GetChanges()[0].GetObject()) != 3 || !b.GetSynced() {
				t.Fatalf("got %v", b)
			}
			return
		}
	}
	t.Fatal("no reset")
}

func TestFaultOnceThenRecovered(t *testing.T) {
	got := batches(t, func(f *forwarder) {
		f.worked()
		f.failed(errors.New("down"))
		f.failed(errors.New("down"))
		f.worked()
		f.worked()
	})
	if len(got) != 3 || got[0].GetFault().GetMessage() != "down" || !got[1].GetRecovered() {
		t.Fatalf("got %v", got)
	}
}

func TestSlowReaderHoldsTheReflector(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	f := &forwarder{ctx: ctx, items: make(chan item, 2)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = f.Replace(objects(100, 1), "")
	}()
	<-f.items
	select {
	case <-done:
		t.Fatal("did not wait for the reader")
	default:
	}
	cancel()
	<-done
}
