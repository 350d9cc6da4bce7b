package observe

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// settleCRD is how long after the last change of a CRD the API server is asked again: it serves a new kind only
// a moment after it is established.
const settleCRD = 300 * time.Millisecond

// watchCRDs makes sure that a kind the API server does not know is noticed when it comes. The watch exists
// only where such a kind was met, and then stays.
func (o *observer) watchCRDs() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.crdEyes {
		return
	}
	o.crdEyes = true
	o.run(func(ctx context.Context) {
		store := &crdStore{changed: make(chan struct{}, 1)}
		o.run(func(ctx context.Context) { o.retryUnknown(ctx, store.changed) })
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		raw.Reflect(ctx, &raw.ListWatch{
			Client: o.at.REST(),
			Target: raw.Target{
				Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions", MetadataOnly: true,
			},
			Decode: func(head raw.Head, _ []byte) (runtime.Object, error) { return &head, nil },
			// Without the right to watch CRDs a new kind is noticed with the next release that has it.
			Failed: func(err error) {
				if isForbidden(err) {
					cancel()
				}
			},
		}, store)
	})
}

// retryUnknown tries the unknown kinds again when CRDs have changed and then been quiet for a moment.
func (o *observer) retryUnknown(ctx context.Context, changed <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		for quiet := false; !quiet; {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			case <-time.After(settleCRD):
				quiet = true
			}
		}
		kinds := o.model.unknownKinds()
		if len(kinds) == 0 {
			continue
		}
		o.at.InvalidateDiscovery()
		for _, at := range kinds {
			o.model.again(at)
		}
	}
}

// crdStore keeps nothing; it only says that something happened.
type crdStore struct{ changed chan struct{} }

func (s *crdStore) Add(any) error {
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return nil
}

func (s *crdStore) Update(object any) error { return s.Add(object) }
func (s *crdStore) Delete(any) error        { return nil }
func (s *crdStore) Resync() error           { return nil }

// Replace is news too: a CRD may have come between the question that failed and this list.
func (s *crdStore) Replace([]any, string) error { return s.Add(nil) }
