package observe

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

// A record is at most 1 MiB packed; unpacked, more than this is an attack.
const maxRecord = 64 << 20

// loader finds inventories, one at a time: a record may unpack to many megabytes, and nobody is waiting.
type loader struct {
	observer *observer
	wake     chan struct{}

	mu   sync.Mutex
	jobs []func(context.Context)
}

func newLoader(o *observer) *loader { return &loader{observer: o, wake: make(chan struct{}, 1)} }

func (l *loader) add(job func(context.Context)) {
	l.mu.Lock()
	l.jobs = append(l.jobs, job)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *loader) run(ctx context.Context) {
	for {
		l.mu.Lock()
		jobs := l.jobs
		l.jobs = nil
		l.mu.Unlock()
		for _, job := range jobs {
			if ctx.Err() != nil {
				return
			}
			job(ctx)
		}
		if len(jobs) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
	}
}

// load finds a record's inventory: put in memory by the action that made it, on disk, or in the record itself.
func (l *loader) load(ctx context.Context, r *record) {
	o := l.observer
	if !o.model.wanted(r) {
		return
	}
	if refs, ok := o.known(r.release, r.revision); ok {
		o.model.setInventory(r, refs, "")
		return
	}
	if refs, traces, ok := o.at.Inventories.Load(r.uid, r.secretState); ok {
		o.at.Inventories.Restore(r.release.namespace, r.release.name, r.revision, refs, traces)
		o.model.setInventory(r, refs, r.secretState)
		return
	}
	refs, err := l.decode(ctx, r)
	if err == nil {
		o.model.setInventory(r, refs, "")
		o.at.Inventories.Put(r.release.namespace, r.release.name, r.revision, refs)
		return
	}
	switch e := fault.FromAPI(err); e.Kind {
	case enginev1.Fault_NOT_FOUND: // pruned meanwhile, as the watch will say
	case enginev1.Fault_UNREACHABLE:
		o.after(5*time.Second, func() { o.load(r) })
	default:
		o.model.setUnreadable(r, fmt.Sprintf("release record %s cannot be read: %s", r.secret, e.Message))
	}
}

// decode reads one record. Of the release only the manifest is decoded: the chart in it is the larger part.
func (l *loader) decode(ctx context.Context, r *record) ([]inventory.Ref, error) {
	secret, err := l.observer.at.Secrets(r.release.namespace).Get(ctx, r.secret, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	manifest, err := manifestOf(secret.Data["release"])
	if err != nil {
		return nil, err
	}
	return inventory.FromManifest(manifest, r.release.namespace, l.observer.at.Mapper()), nil
}

var gzipMagic = []byte{0x1f, 0x8b, 0x08}

// manifestOf unpacks what Helm stores: base64 of gzip of JSON.
func manifestOf(data []byte) (string, error) {
	unpacked := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, err := base64.StdEncoding.Decode(unpacked, data)
	if err != nil {
		return "", fmt.Errorf("it is not base64: %w", err)
	}
	unpacked = unpacked[:n]
	if bytes.HasPrefix(unpacked, gzipMagic) {
		reader, err := gzip.NewReader(bytes.NewReader(unpacked))
		if err != nil {
			return "", fmt.Errorf("it is not gzip: %w", err)
		}
		if unpacked, err = io.ReadAll(io.LimitReader(reader, maxRecord+1)); err != nil {
			return "", fmt.Errorf("it is not gzip: %w", err)
		}
		if len(unpacked) > maxRecord {
			return "", fmt.Errorf("it is larger than %d MiB", maxRecord>>20)
		}
	}
	var release struct {
		Manifest string `json:"manifest"`
	}
	if err := json.Unmarshal(unpacked, &release); err != nil {
		return "", fmt.Errorf("it is not a release: %w", err)
	}
	return release.Manifest, nil
}
