package raw

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Decode makes of an object what a reflector's store is to get: bytes, or a few fields. It runs once per
// object and version; what it returns embeds the Head.
type Decode func(head Head, data []byte) (runtime.Object, error)

// ListWatch feeds a reflector. It reports every request that fails and every one that works again, because
// reflectors retry in silence.
type ListWatch struct {
	Client                       rest.Interface
	Target                       Target
	LabelSelector, FieldSelector string
	Decode                       Decode
	Managed                      bool // Decode wants the managedFields
	// Failed and Worked may be nil. They are called from the goroutine that reads. A list has worked when all of it
	// has come, in pages or as a stream.
	Failed func(error)
	Worked func()
}

var _ cache.ListerWatcherWithContext = (*ListWatch)(nil)

// List implements cache.ListerWatcher.
func (lw *ListWatch) List(options metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), options)
}

// Watch implements cache.ListerWatcher.
func (lw *ListWatch) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), options)
}

// ListWithContext reads one page.
func (lw *ListWatch) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	lw.narrow(&options)
	page, err := List(ctx, lw.Client, lw.Target, options)
	if err != nil {
		lw.failed(ctx, err)
		return nil, err
	}
	list := &internalversion.List{
		ListMeta: metav1.ListMeta{ResourceVersion: page.ResourceVersion, Continue: page.Continue},
		Items:    make([]runtime.Object, 0, len(page.Items)),
	}
	for _, item := range page.Items {
		object, err := lw.decode(item)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, object)
	}
	if page.Continue == "" {
		lw.worked()
	}
	return list, nil
}

// WatchWithContext opens a watch, or a list that goes on as a watch.
func (lw *ListWatch) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	lw.narrow(&options)
	stream, err := Stream(ctx, lw.Client, lw.Target, options)
	if err != nil {
		// A server that cannot stream lists refuses; the reflector then lists, and that failure counts.
		if options.SendInitialEvents == nil || isRetriedInSilence(err) {
			lw.failed(ctx, err)
		}
		return nil, err
	}
	if options.SendInitialEvents == nil {
		lw.worked()
	}
	events := &eventReader{stream: stream, frames: newFrames(stream), decode: lw.decode, bookmarked: lw.worked}
	return watch.NewStreamWatcher(events, reporter{}), nil
}

func (lw *ListWatch) narrow(options *metav1.ListOptions) {
	options.LabelSelector = lw.LabelSelector
	options.FieldSelector = lw.FieldSelector
}

func (lw *ListWatch) decode(data []byte) (runtime.Object, error) {
	head, data, err := read(data)
	if err != nil {
		return nil, err
	}
	if !lw.Managed {
		head.managed = nil
	}
	return lw.Decode(head, data)
}

func (lw *ListWatch) failed(ctx context.Context, err error) {
	if lw.Failed != nil && ctx.Err() == nil {
		lw.Failed(err)
	}
}

func (lw *ListWatch) worked() {
	if lw.Worked != nil {
		lw.Worked()
	}
}

// eventReader decodes a watch's stream.
type eventReader struct {
	stream io.ReadCloser
	frames *frames
	decode func([]byte) (runtime.Object, error)
	// bookmarked is called where a bookmark says that everything before it has come.
	bookmarked func()
}

// Decode implements watch.Decoder.
func (r *eventReader) Decode() (watch.EventType, runtime.Object, error) {
	frame, err := r.frames.next()
	if err != nil {
		return "", nil, err
	}
	kind, object, err := readEvent(frame)
	if err != nil {
		return "", nil, err
	}
	switch kind {
	case watch.Error:
		status := &metav1.Status{}
		if err := json.Unmarshal(object, status); err != nil {
			return "", nil, err
		}
		return kind, status, nil
	case watch.Bookmark:
		head, _, err := read(object)
		head.managed = nil
		r.bookmarked()
		return kind, &head, err
	case watch.Added, watch.Modified, watch.Deleted:
		// What is decoded may be kept, and the frame's memory is used again.
		decoded, err := r.decode(bytes.Clone(object))
		return kind, decoded, err
	}
	return "", nil, fmt.Errorf("unknown watch event type %q", kind)
}

// readEvent finds an event's parts; the object shares its memory.
func readEvent(frame []byte) (watch.EventType, []byte, error) {
	var (
		kind   watch.EventType
		object []byte
	)
	_, err := fields(frame, 0, func(key []byte, _, value span) error {
		switch string(key) {
		case "type":
			kind = watch.EventType(text(frame[value.start:value.end]))
		case "object":
			object = frame[value.start:value.end]
		}
		return nil
	})
	return kind, object, err
}

// Close implements watch.Decoder.
func (r *eventReader) Close() { _ = r.stream.Close() }

// reporter turns a broken stream into the event that makes a reflector start over.
type reporter struct{}

func (reporter) AsObject(err error) runtime.Object {
	return &metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonInternalError,
		Message: fmt.Sprintf("unable to read the watch: %v", err),
	}
}
