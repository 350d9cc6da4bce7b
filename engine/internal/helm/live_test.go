//go:build live

package helm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pilothouse-dev/pilothouse/engine/internal/chart"
	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// These tests need a real API server: set PILOTHOUSE_TEST_KUBECONFIG to one they may fill with namespaces.
type live struct {
	*testing.T
	cluster   *cluster.Cluster
	runner    *Runner
	namespace string
	mutex     sync.Mutex
	requests  []string // what the engine asked the API server, if counted
}

func newLive(t *testing.T, counted bool) *live {
	t.Helper()
	path := os.Getenv("PILOTHOUSE_TEST_KUBECONFIG")
	if path == "" {
		t.Fatal("PILOTHOUSE_TEST_KUBECONFIG must name a cluster")
	}
	kubeconfig, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l := &live{T: t}
	if counted {
		kubeconfig = l.count(kubeconfig)
	}
	l.cluster, err = cluster.NewRegistry().Connect(context.Background(), &enginev1.ConnectRequest{
		Credentials: &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: kubeconfig}, Trusted: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	charts, err := chart.New(chart.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	l.runner = NewRunner(charts)
	l.namespace = fmt.Sprintf("engine-%d", time.Now().UnixNano())
	_, err = l.cluster.Clientset().CoreV1().Namespaces().Create(context.Background(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.cluster.Clientset().CoreV1().Namespaces().Delete(context.Background(), l.namespace, metav1.DeleteOptions{})
	})
	if _, err := l.cluster.Capabilities(context.Background()); err != nil {
		t.Fatal(err)
	}
	return l
}

// count puts a proxy before the API server that notes every request.
func (l *live) count(kubeconfig []byte) []byte {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		l.Fatal(err)
	}
	round, err := rest.TransportFor(config)
	if err != nil {
		l.Fatal(err)
	}
	home, err := url.Parse(config.Host)
	if err != nil {
		l.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(home)
	proxy.Transport = round
	proxy.FlushInterval = -1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mutex.Lock()
		l.requests = append(l.requests, r.Method+" "+r.URL.Path)
		l.mutex.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	l.Cleanup(server.Close)
	return []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"` +
		server.URL + `"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":""}}]}`)
}

func (l *live) asked() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	out := l.requests
	l.requests = nil
	return out
}

func (l *live) put(packed []byte) string {
	l.Helper()
	info, err := l.runner.Charts.Put(packed)
	if err != nil {
		l.Fatal(err)
	}
	return info.Digest
}

func (l *live) run(request *enginev1.RunRequest) *enginev1.Outcome {
	l.Helper()
	request.Namespace = l.namespace
	outcome, err := l.runner.Run(context.Background(), l.cluster, request, nil)
	if err != nil {
		l.Fatal(err)
	}
	return outcome
}

func (l *live) good(request *enginev1.RunRequest) *enginev1.Outcome {
	l.Helper()
	outcome := l.run(request)
	if outcome.GetFault() != nil {
		l.Fatalf("%s: %s", request.GetAction(), outcome.GetFault())
	}
	return outcome
}

func (l *live) bad(request *enginev1.RunRequest, kind enginev1.Fault_Kind, words ...string) *enginev1.Outcome {
	l.Helper()
	outcome := l.run(request)
	if outcome.GetFault() == nil || outcome.GetFault().GetKind() != kind {
		l.Fatalf("%s: got %v, want %s", request.GetAction(), outcome.GetFault(), kind)
	}
	for _, word := range words {
		if !strings.Contains(outcome.GetFault().GetMessage(), word) {
			l.Errorf("%q does not say %q", outcome.GetFault().GetMessage(), word)
		}
	}
	l.Log(outcome.GetFault().GetMessage())
	return outcome
}

const tinyTemplate = `apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {message: {{ .Values.message | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app: {{ .Release.Name }}}, clusterIP: None, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      serviceAccountName: {{ .Release.Name }}
      containers: [{name: main, image: {{ .Values.image }}}]
`

const tinyValues = "replicas: 1\nimage: registry.example/app:1\nmessage: hello\n"

func tiny(t *testing.T) []byte {
	return pack(t, map[string]string{"values.yaml": tinyValues, "templates/all.yaml": tinyTemplate, "templates/NOTES.txt": "hi {{ .Release.Name }}"})
}

func object(values any) []byte {
	out, _ := json.Marshal(values)
	return out
}
