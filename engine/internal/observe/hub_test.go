package observe

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

const nowhere = `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
	"contexts": [{"name": "c", "context": {"cluster": "c"}}],
	"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}]}`

func TestNothingRunsAfterTheLastStream(t *testing.T) {
	at, err := cluster.NewRegistry().Connect(context.Background(), &enginev1.ConnectRequest{
		Credentials: &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: []byte(nowhere)},
	})
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	hub := NewHub()
	first, second := hub.Subscribe(at), hub.Subscribe(at)
	if len(hub.observers) != 1 {
		t.Fatal("two streams of a cluster share an observer")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		batch, err := second.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if fault := batch.GetFault(); fault != nil {
			if fault.GetKind() != enginev1.Fault_UNREACHABLE {
				t.Fatalf("got %v", fault)
			}
			break
		}
	}
	first.Close()
	second.Close()
	second.Close()
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines are left of %d", runtime.NumGoroutine(), before)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
