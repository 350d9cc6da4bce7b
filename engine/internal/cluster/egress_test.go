package cluster

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

func guarded(t *testing.T, allow ...string) *Registry {
	t.Helper()
	guard, err := egress.New(egress.Policy{Allow: allow})
	if err != nil {
		t.Fatal(err)
	}
	registry := NewRegistry()
	registry.Guard = guard
	return registry
}

func pointing(server, proxy string) *enginev1.ConnectRequest {
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],` +
		`"clusters":[{"name":"c","cluster":{"server":"` + server + `","proxy-url":"` + proxy + `"}}]}`
	return &enginev1.ConnectRequest{Credentials: &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: []byte(text)}}
}

func request(t *testing.T, registry *Registry, to *enginev1.ConnectRequest) error {
	t.Helper()
	at, err := registry.Connect(context.Background(), to)
	if err != nil {
		return err
	}
	_, err = at.Clientset().CoreV1().Namespaces().Get(context.Background(), "x", metav1.GetOptions{})
	return fault.FromAPI(err)
}

// answering counts requests, and says 404 to each.
func answering(t *testing.T) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "not here", http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	return server, &asked
}

func TestAUsersServerIsGuarded(t *testing.T) {
	server, asked := answering(t)
	host := strings.TrimPrefix(server.URL, "http://")
	port := host[strings.LastIndex(host, ":")+1:]
	for name, to := range map[string]*enginev1.ConnectRequest{
		"loopback":   pointing(server.URL, ""),
		"by name":    pointing("http://localhost:"+port, ""),
		"link-local": pointing("http://169.254.169.254", ""),
		"its proxy":  pointing("http://192.0.2.1:6443", server.URL),
	} {
		if err := request(t, guarded(t), to); !fault.Is(err, enginev1.Fault_INVALID) || !strings.Contains(err.Error(), "is refused") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A proxy that may be used does not hear of a server that may not.
	if err := request(t, guarded(t, host), pointing("http://169.254.169.254", server.URL)); !fault.Is(err, enginev1.Fault_INVALID) {
		t.Errorf("through a proxy: %v", err)
	}
	if asked.Load() != 0 {
		t.Fatalf("%d requests came through", asked.Load())
	}
	for name, to := range map[string]*enginev1.ConnectRequest{
		"directly": pointing(server.URL, ""), "by a proxy": pointing("http://192.0.2.1:6443", server.URL),
	} {
		if err := request(t, guarded(t, host), to); !fault.Is(err, enginev1.Fault_NOT_FOUND) {
			t.Errorf("%s, with an entry: %v", name, err)
		}
	}
	if asked.Load() != 2 {
		t.Fatalf("%d requests came through, want 2", asked.Load())
	}
}

func TestTheOperatorsServerIsItsOwn(t *testing.T) {
	server, _ := answering(t)
	registry := guarded(t)
	mine := pointing(server.URL, "")
	mine.Trusted = true
	if err := request(t, registry, mine); !fault.Is(err, enginev1.Fault_NOT_FOUND) {
		t.Fatalf("the operator's own: %v", err)
	}
	far := pointing("https://192.0.2.9:6443", "")
	far.Trusted = true
	if _, err := registry.Connect(context.Background(), far); err != nil {
		t.Fatal(err)
	}
	_, err := registry.Connect(context.Background(), pointing("https://192.0.2.9:6443", ""))
	if !fault.Is(err, enginev1.Fault_INVALID) || !strings.Contains(err.Error(), "--egress-allow 192.0.2.9:6443") {
		t.Fatalf("a user's way to the operator's server: %v", err)
	}
}
