package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// guarded answers like an API server that refuses everything but questions about oneself.
type guarded struct {
	mu      sync.Mutex
	allowed bool
	asked   []string
}

func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path != "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`)
		return
	}
	body, _ := io.ReadAll(r.Body)
	asked, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review := asked.(*authorizationv1.SelfSubjectAccessReview)
	g.mu.Lock()
	defer g.mu.Unlock()
	about := review.Spec.ResourceAttributes
	g.asked = append(g.asked, about.Verb+" "+about.Resource)
	review.Status.Allowed = g.allowed
	review.Kind, review.APIVersion = "SelfSubjectAccessReview", "authorization.k8s.io/v1"
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(review)
}

func (g *guarded) allow() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.allowed = true
}

func (g *guarded) questions() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string{}, g.asked...)
}

func TestEyesThatMaySeeMoreAreOpenedAnew(t *testing.T) {
	api := &guarded{}
	server := httptest.NewServer(api)
	defer server.Close()
	at := connect(t, server.URL)
	hub := NewHub()
	subscription := hub.Subscribe(at)
	defer subscription.Close()
	old := hub.observers[at.ID].observer
	until(t, "records are looked at by namespace", func() bool { records, _ := old.model.refused(); return records })
	old.widen()
	until(t, "it is asked", func() bool { return len(api.questions()) == 1 })
	old.widen() // a refusal holds for a while
	api.allow()
	old.mu.Lock()
	old.askedWider = time.Now().Add(-widenRest)
	old.mu.Unlock()
	old.widen()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var err error
	for err == nil {
		_, err = subscription.Next(ctx)
	}
	if !errors.Is(err, io.EOF) {
		t.Fatalf("the stream ended with %v", err)
	}
	if got, want := fmt.Sprint(api.questions()), "[watch secrets watch secrets list secrets]"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	another := hub.Subscribe(at)
	defer another.Close()
	if hub.observers[at.ID].observer == old {
		t.Error("the closed eyes are still shared")
	}
	// What is said to be allowed, and is refused all the same, does not close them again and again.
	asked := len(api.questions())
	newer := hub.observers[at.ID].observer
	until(t, "records are still refused", func() bool { records, _ := newer.model.refused(); return records })
	newer.askWider(ctx, false)
	if len(api.questions()) != asked || hub.observers[at.ID].observer != newer {
		t.Error("the new eyes were closed for what closed the old ones")
	}
	secrets := renewal{at.ID, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}}
	hub.mu.Lock()
	hub.renewals[secrets] = time.Now().Add(-renewRest)
	hub.mu.Unlock()
	if !hub.mayRenew(secrets) || !hub.mayRenew(renewal{at.ID, scalersResource}) {
		t.Error("it is for good, or for everything")
	}
}

func connect(t *testing.T, server string) *cluster.Cluster {
	t.Helper()
	at, err := cluster.NewRegistry().Connect(context.Background(), &enginev1.ConnectRequest{
		Credentials: &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: []byte(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config",
			"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}],
			"clusters": [{"name": "c", "cluster": {"server": %q}}]}`, server))},
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
