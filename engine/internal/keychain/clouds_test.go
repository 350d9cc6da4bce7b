package keychain

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
)

// cloud answers for every address the libraries know, over real connections to one local server.
type cloud struct {
	*http.Client

	mutex  sync.Mutex
	asked  []string // host and path
	forms  []url.Values
	header []http.Header
	answer http.HandlerFunc
}

func newCloud(t *testing.T, answer http.HandlerFunc) *cloud {
	t.Helper()
	made := &cloud{answer: answer}
	server := httptest.NewServer(made)
	t.Cleanup(server.Close)
	made.Client = &http.Client{Transport: toLocal{server.Listener.Addr().String()}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return made
}

// toLocal sends every request to the local server, which sees the host that was meant.
type toLocal struct{ address string }

func (l toLocal) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := request.Clone(request.Context())
	sent.Host = request.URL.Host
	sent.URL.Scheme, sent.URL.Host = "http", l.address
	return http.DefaultTransport.RoundTrip(sent)
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	_ = request.ParseForm()
	c.mutex.Lock()
	c.asked = append(c.asked, request.Host+request.URL.Path)
	c.forms = append(c.forms, request.Form)
	c.header = append(c.header, request.Header)
	c.mutex.Unlock()
	c.answer(w, request)
}

func send(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// bare takes whatever identity this machine may have out of the environment.
func bare(t *testing.T) {
	t.Helper()
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		for _, prefix := range []string{"AWS_", "AZURE_", "GOOGLE_", "MSI_", "IDENTITY_", "GCE_"} {
			if strings.HasPrefix(name, prefix) {
				t.Setenv(name, "")
				_ = os.Unsetenv(name)
			}
		}
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}
