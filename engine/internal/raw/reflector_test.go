package raw

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// tape notes what a reflector does to its store.
type tape chan string

func (c tape) Add(object any) error    { c <- "add " + object.(*Object).Name; return nil }
func (c tape) Update(object any) error { c <- "update " + object.(*Object).Name; return nil }
func (c tape) Delete(object any) error { c <- "delete " + object.(*Object).Name; return nil }
func (c tape) Resync() error           { return nil }
func (c tape) Replace(objects []any, _ string) error {
	names := []string{}
	for _, object := range objects {
		names = append(names, object.(*Object).Name)
	}
	c <- "replace " + strings.Join(names, ",")
	return nil
}

func client(t *testing.T, handler http.HandlerFunc) rest.Interface {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	made, err := rest.RESTClientFor(&rest.Config{
		Host: server.URL, QPS: -1,
		ContentConfig: rest.ContentConfig{GroupVersion: &schema.GroupVersion{}, NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func event(kind, name, version, annotations string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"resourceVersion":%q,"annotations":{%s}}}}`+"\n",
		kind, name, version, annotations)
}

const ended = `"k8s.io/initial-events-end":"true"`

func expect(t *testing.T, c tape, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got := <-c:
			if got != w {
				t.Fatalf("got %q, want %q", got, w)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("waited in vain for %q", w)
		}
	}
}

func TestGapIsListedAgain(t *testing.T) {
	var watches atomic.Int32
	at := client(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		flush := w.(http.Flusher).Flush
		switch watches.Add(1) {
		case 1:
			// An object that claims to be the end of the list is only an object.
			fmt.Fprint(w, event("ADDED", "a", "1", ended), event("BOOKMARK", "", "2", ended), event("MODIFIED", "a", "3", ""))
			flush()
			fmt.Fprint(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired","message":"too old"}}`+"\n")
		default:
			fmt.Fprint(w, event("ADDED", "b", "8", ""), event("BOOKMARK", "", "9", ended))
			flush()
			<-r.Context().Done()
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c := make(tape, 16)
	go func() {
		defer close(done)
		Reflect(ctx, &ListWatch{Client: at, Target: Target{Version: "v1", Plural: "configmaps"}, Decode: Keep}, c)
	}()
	expect(t, c, "replace a", "update a", "replace b")
	cancel()
	<-done
}

func TestServerWithoutStreamedLists(t *testing.T) {
	failures := make(chan error, 16)
	at := client(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		switch {
		case query.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":422,"reason":"Invalid","message":"no"}`)
		case query.Get("watch") != "":
			fmt.Fprint(w, event("DELETED", "a", "6", ""))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			fmt.Fprint(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"a","managedFields":[{}]}}]}`)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := make(tape, 16)
	go Reflect(ctx, &ListWatch{
		Client: at, Target: Target{Version: "v1", Plural: "configmaps"}, Decode: Keep,
		Failed: func(err error) { failures <- err },
	}, c)
	expect(t, c, "replace a", "delete a")
	if len(failures) > 0 {
		t.Fatalf("a server without a feature is no failure: %v", <-failures)
	}
}

func TestHalfAListHasNotWorked(t *testing.T) {
	var mended atomic.Bool
	at := client(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		switch {
		case mended.Load():
			fmt.Fprint(w, event("ADDED", "a", "1", ""), event("BOOKMARK", "", "2", ended))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case query.Get("watch") != "":
			fmt.Fprint(w, event("ADDED", "a", "1", ""))
			fmt.Fprint(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":500,"reason":"InternalError","message":"no"}}`+"\n")
		case query.Get("continue") == "":
			fmt.Fprint(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"5","continue":"more"},"items":[{"metadata":{"name":"a"}}]}`)
		default:
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"reason":"InternalError","message":"no"}`)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, heard := make(tape, 16), make(chan string, 64)
	go Reflect(ctx, &ListWatch{
		Client: at, Target: Target{Version: "v1", Plural: "configmaps"}, Decode: Keep,
		Failed: func(error) { heard <- "failed" }, Worked: func() { heard <- "worked" },
	}, c)
	for range 2 {
		if got := <-heard; got != "failed" {
			t.Fatalf("it has %s, and only a part has come", got)
		}
	}
	mended.Store(true)
	expect(t, c, "replace a")
	for got := <-heard; got != "worked"; got = <-heard {
		t.Log(got)
	}
}
