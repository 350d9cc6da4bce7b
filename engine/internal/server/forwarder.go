package server

import (
	"context"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// item is one thing a watch has to tell.
type item struct {
	change                   *enginev1.WatchBatch_Change
	reset, synced, recovered bool
	fault                    *enginev1.Fault
}

// forwarder is a reflector's store that keeps nothing. It blocks when the caller is slow, which holds the
// reflector, and so the API server's stream: memory stays bounded.
type forwarder struct {
	ctx     context.Context
	target  raw.Target
	items   chan item
	listed  bool
	failing bool
}

// push waits for the caller, or for its leaving. It has no error to return: client-go would log one, with the
// object, and objects hold secrets.
func (f *forwarder) push(i item) {
	select {
	case f.items <- i:
	case <-f.ctx.Done():
	}
}

// Add implements cache.ReflectorStore.
func (f *forwarder) Add(object any) error {
	f.push(item{change: &enginev1.WatchBatch_Change{Object: object.(*raw.Object).JSON}})
	return nil
}

// Update implements cache.ReflectorStore.
func (f *forwarder) Update(object any) error { return f.Add(object) }

// Delete implements cache.ReflectorStore.
func (f *forwarder) Delete(object any) error {
	f.push(item{change: &enginev1.WatchBatch_Change{
		Type: enginev1.WatchBatch_GONE, Object: object.(*raw.Object).HeadJSON(),
	}})
	return nil
}

// Replace implements cache.ReflectorStore: the first snapshot, or a later one after a gap.
func (f *forwarder) Replace(objects []any, _ string) error {
	if f.listed {
		f.push(item{reset: true})
	}
	for i, object := range objects {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		_ = f.Add(object)
		objects[i] = nil // sent: the rest of a large snapshot need not keep it alive
	}
	f.listed = true
	f.push(item{synced: true})
	return nil
}

// Resync implements cache.ReflectorStore; nothing is kept, so there is nothing to repeat.
func (f *forwarder) Resync() error { return nil }

func (f *forwarder) failed(err error) {
	if !f.failing {
		f.failing = true
		f.push(item{fault: f.target.Explain(err).Proto()})
	}
}

func (f *forwarder) worked() {
	if f.failing {
		f.failing = false
		f.push(item{recovered: true})
	}
}
