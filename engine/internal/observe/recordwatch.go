package observe

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

const (
	// pollRecords is how often records are listed that may not be watched.
	pollRecords = 15 * time.Second
	// pollsPerTry is after how many polls a watch is tried again: rights may have been granted.
	pollsPerTry = 20
	listPage    = 500
)

func (o *observer) recordList(namespace string) *raw.ListWatch {
	return &raw.ListWatch{
		Client:        o.at.REST(),
		Target:        raw.Target{Version: "v1", Plural: "secrets", Namespace: namespace, MetadataOnly: true},
		LabelSelector: recordSelector,
		Decode:        decodeRecord,
	}
}

// watchRecords follows the records of all namespaces, or says that it may not.
func (o *observer) watchRecords(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	list, forbidden := o.recordList(""), false
	list.Failed = func(err error) {
		if forbidden = isForbidden(err); forbidden {
			cancel()
			return
		}
		o.model.fail(fault.FromAPI(err).Proto())
	}
	list.Worked = o.model.work
	raw.Reflect(ctx, list, &recordStore{o.model, ""})
	if forbidden {
		o.model.work()
		o.model.narrowRecords()
	}
}

// records follows those of one namespace, or no longer.
func (o *observer) records(namespace string, on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if cancel := o.recordEyes[namespace]; cancel != nil {
		cancel()
		delete(o.recordEyes, namespace)
	}
	if on {
		ctx, cancel := context.WithCancel(o.ctx)
		o.recordEyes[namespace] = cancel
		o.run(func(context.Context) { o.followRecords(ctx, namespace) })
	}
}

// followRecords watches a namespace's records, and lists them now and then while that is not allowed.
func (o *observer) followRecords(ctx context.Context, namespace string) {
	for ctx.Err() == nil {
		watching, stop := context.WithCancel(ctx)
		list := o.recordList(namespace)
		list.Failed = func(err error) {
			if isForbidden(err) {
				stop()
				return
			}
			o.model.failSpace(namespace, fault.FromAPI(err).Proto())
		}
		list.Worked = func() {
			o.model.workSpace(namespace)
		}
		raw.Reflect(watching, list, &recordStore{o.model, namespace})
		stop()
		o.model.pollSpace(namespace, true)
		o.pollRecords(ctx, namespace)
		o.widen()
		o.model.pollSpace(namespace, false)
	}
}

func (o *observer) pollRecords(ctx context.Context, namespace string) {
	for range pollsPerTry {
		records, err := o.listRecords(ctx, namespace)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			o.model.failSpace(namespace, fault.FromAPI(err).Proto())
		default:
			o.model.replaceRecords(namespace, records)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pollRecords):
		}
	}
}

func (o *observer) listRecords(ctx context.Context, namespace string) ([]*record, error) {
	list, options := o.recordList(namespace), metav1.ListOptions{Limit: listPage}
	var out []*record
	for {
		page, err := list.ListWithContext(ctx, options)
		if err != nil {
			return nil, err
		}
		found := page.(*internalversion.List)
		for _, item := range found.Items {
			if r := item.(*recordObject).record; r != nil {
				out = append(out, r)
			}
		}
		if options.Continue = found.Continue; options.Continue == "" {
			return out, nil
		}
	}
}
