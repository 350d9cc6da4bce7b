package web

import (
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const secret = "hunter2"

func send(t *testing.T, ask *enginev1.HttpRequest) (*enginev1.HttpReply, error) {
	t.Helper()
	guard, err := egress.New(egress.Policy{Allow: []string{"127.0.0.1:*"}})
	if err != nil {
		t.Fatal(err)
	}
	return Send(context.Background(), guard, ask)
}

// echo answers with what it was asked, and its path decides the rest.
func echo(t *testing.T, other string) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Add("Seen", r.Header.Get("X-Token"))
		w.Header().Add("Agent", r.UserAgent())
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, r.Method+" "+string(body))
	})
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other+"/echo", http.StatusFound)
	})
	mux.HandleFunc("/forward", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other+"/echo", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/metadata", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
	})
	return mux
}

func served(t *testing.T, other string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(echo(t, other))
	t.Cleanup(server.Close)
	return server
}

func header(reply *enginev1.HttpReply, name string) string {
	for _, one := range reply.GetHeaders() {
		if one.GetName() == name {
			return one.GetValue()
		}
	}
	return ""
}

func token() []*enginev1.HttpHeader {
	return []*enginev1.HttpHeader{{Name: "x-token", Value: secret}}
}

func TestARequestArrivesAsItWasMeant(t *testing.T) {
	server := served(t, "")
	reply, err := send(t, &enginev1.HttpRequest{Method: "post", Url: server.URL + "/echo", Headers: token(), Body: []byte("hello")})
	if err != nil {
		t.Fatal(err)
	}
	if reply.GetStatus() != 202 || string(reply.GetBody()) != "POST hello" || header(reply, "Seen") != secret || header(reply, "Agent") != "pilothouse" {
		t.Fatalf("got %v", reply)
	}
	reply, err = send(t, &enginev1.HttpRequest{Url: server.URL + "/echo", MaxReplyBytes: 2})
	if err != nil || string(reply.GetBody()) != "GE" || !reply.GetTruncated() {
		t.Fatalf("got %v, %v", reply, err)
	}
}

func TestRedirects(t *testing.T) {
	other := served(t, "")
	server := served(t, other.URL)
	reply, err := send(t, &enginev1.HttpRequest{Url: server.URL + "/elsewhere", Headers: token()})
	if err != nil || reply.GetStatus() != http.StatusFound {
		t.Fatalf("a redirect is the answer unless asked otherwise: %v, %v", reply, err)
	}
	reply, err = send(t, &enginev1.HttpRequest{Url: server.URL + "/elsewhere", Headers: token(), MaxRedirects: 1})
	if err != nil || reply.GetStatus() != http.StatusAccepted || header(reply, "Seen") != "" {
		t.Fatalf("another host must not see the headers: %v, %v", reply, err)
	}
	reply, err = send(t, &enginev1.HttpRequest{Method: "POST", Url: server.URL + "/forward", Body: []byte(secret), MaxRedirects: 1})
	if err != nil || reply.GetStatus() != http.StatusTemporaryRedirect {
		t.Fatalf("another host must not see the body: %v, %v", reply, err)
	}
	reply, err = send(t, &enginev1.HttpRequest{Url: server.URL + "/loop", MaxRedirects: 3})
	if err != nil || reply.GetStatus() != http.StatusFound {
		t.Fatalf("a loop ends: %v, %v", reply, err)
	}
	_, err = send(t, &enginev1.HttpRequest{Url: server.URL + "/metadata", MaxRedirects: 3})
	wantFault(t, err, enginev1.Fault_INVALID, "169.254.169.254:80")
}

func wantFault(t *testing.T, err error, kind fault.Kind, part string) {
	t.Helper()
	if !fault.Is(err, kind) || !strings.Contains(fault.From(err).Message, part) {
		t.Fatalf("got %v, want %v with %q", err, kind, part)
	}
	if strings.Contains(fault.From(err).Message, secret) {
		t.Fatalf("a secret is in %q", fault.From(err).Message)
	}
}

func TestWhatGoesWrong(t *testing.T) {
	server := served(t, "")
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, row := range map[string]struct {
		ask  *enginev1.HttpRequest
		kind fault.Kind
		part string
	}{
		"slow":      {&enginev1.HttpRequest{Url: server.URL + "/slow?" + secret, TimeoutMs: 50}, enginev1.Fault_UNREACHABLE, "in time"},
		"closed":    {&enginev1.HttpRequest{Url: closed.URL + "/" + secret}, enginev1.Fault_UNREACHABLE, "refused"},
		"metadata":  {&enginev1.HttpRequest{Url: "http://169.254.169.254/" + secret}, enginev1.Fault_INVALID, "never allowed"},
		"loopback":  {&enginev1.HttpRequest{Url: "http://127.0.0.2:80/" + secret}, enginev1.Fault_INVALID, "--egress-allow 127.0.0.2:80"},
		"file":      {&enginev1.HttpRequest{Url: "file:///" + secret}, enginev1.Fault_INVALID, "http://"},
		"no host":   {&enginev1.HttpRequest{Url: "http:///x"}, enginev1.Fault_INVALID, "http://"},
		"user":      {&enginev1.HttpRequest{Url: "https://a:" + secret + "@b/"}, enginev1.Fault_INVALID, "header"},
		"method":    {&enginev1.HttpRequest{Url: server.URL, Method: "A B"}, enginev1.Fault_INVALID, "method"},
		"header":    {&enginev1.HttpRequest{Url: server.URL, Headers: []*enginev1.HttpHeader{{Name: "X", Value: secret + "\r\nY: z"}}}, enginev1.Fault_INVALID, "header 1"},
		"host":      {&enginev1.HttpRequest{Url: server.URL, Headers: []*enginev1.HttpHeader{{Name: "host", Value: "x"}}}, enginev1.Fault_INVALID, "Host"},
		"CA bundle": {&enginev1.HttpRequest{Url: server.URL, CaBundle: []byte(secret)}, enginev1.Fault_INVALID, "CA bundle"},
		"key":       {&enginev1.HttpRequest{Url: server.URL, ClientKey: []byte(secret)}, enginev1.Fault_INVALID, "pair"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := send(t, row.ask)
			wantFault(t, err, row.kind, row.part)
		})
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(echo(t, ""))
	t.Cleanup(server.Close)
	url := server.URL + "/echo"
	_, err := send(t, &enginev1.HttpRequest{Url: url})
	wantFault(t, err, enginev1.Fault_UNREACHABLE, "certificate")
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, ask := range map[string]*enginev1.HttpRequest{
		"bundle":   {Url: url, CaBundle: bundle},
		"name":     {Url: url, CaBundle: bundle, TlsServerName: "example.com"},
		"insecure": {Url: url, InsecureSkipTlsVerify: true},
	} {
		if reply, err := send(t, ask); err != nil || reply.GetStatus() != http.StatusAccepted {
			t.Errorf("%s: %v, %v", name, reply, err)
		}
	}
	_, err = send(t, &enginev1.HttpRequest{Url: url, CaBundle: bundle, TlsServerName: "other.test"})
	wantFault(t, err, enginev1.Fault_UNREACHABLE, "other.test")
}
