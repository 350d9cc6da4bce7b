package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

func guard(t *testing.T, policy Policy) *Guard {
	t.Helper()
	made, err := New(policy)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func served(t *testing.T, answer string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	t.Cleanup(server.Close)
	return server
}

// port is of a server on loopback.
func port(t *testing.T, server *httptest.Server) string {
	t.Helper()
	_, found, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func get(g *Guard, address string) (string, error) {
	client := http.Client{Transport: g.Transport(nil)}
	response, err := client.Get(address)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func wantRefused(t *testing.T, err error, parts ...string) {
	t.Helper()
	if !errors.Is(err, ErrRefused) || !fault.Is(err, enginev1.Fault_INVALID) {
		t.Fatalf("got %v, want a refusal", err)
	}
	for _, part := range parts {
		if !strings.Contains(fault.From(err).Message, part) {
			t.Fatalf("%q does not say %q", fault.From(err).Message, part)
		}
	}
}

func TestClassify(t *testing.T) {
	for text, want := range map[string]class{
		"10.0.0.1": ordinary, "192.168.1.1": ordinary, "172.16.0.1": ordinary, "100.64.0.1": ordinary,
		"8.8.8.8": ordinary, "fd00::1": ordinary, "2001:4860:4860::8888": ordinary,
		"64:ff9b::8.8.8.8": ordinary, "64:ff9b:1::10.0.0.1": ordinary, "2002:808:808::1": ordinary, "2001:0:808:808::f7f7:f7f7": ordinary,
		"127.0.0.1": loopback, "127.9.9.9": loopback, "::1": loopback, "::ffff:127.0.0.1": loopback,
		"64:ff9b::127.0.0.1": loopback, "2002:7f00:1::": loopback, "::127.0.0.1": loopback,
		"169.254.169.254": forbidden, "169.254.170.2": forbidden, "::ffff:169.254.169.254": forbidden,
		"::169.254.169.254": forbidden, "64:ff9b::169.254.169.254": forbidden, "64:ff9b::a9fe:a9fe": forbidden,
		"64:ff9b:1::169.254.169.254": forbidden, "64:ff9b:1:a9fe:a9:fe00::": forbidden,
		"2002:a9fe:a9fe::1": forbidden, "2001:0:808:808::5601:5601": forbidden, "2001:0:a9fe:a9fe::f7f7:f7f7": forbidden, "fe80::5efe:a9fe:a9fe": forbidden,
		"2001:db8::5efe:a9fe:a9fe": forbidden, "fe80::1": forbidden, "fe80::1%eth0": forbidden,
		"febf::1": forbidden, "fd00:ec2::254": forbidden, "fd20:ce::254": forbidden, "100.100.100.200": forbidden,
		"168.63.129.16": forbidden, "0.0.0.0": forbidden, "0.1.2.3": forbidden, "::": forbidden,
		"224.0.0.1": forbidden, "255.255.255.255": forbidden, "ff02::1": forbidden, "::ffff:0.0.0.0": forbidden,
	} {
		if got := classify(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
}

func TestLoopbackNeedsAnEntry(t *testing.T) {
	server := served(t, "hello")
	at := port(t, server)
	_, err := get(guard(t, Policy{}), server.URL)
	wantRefused(t, err, "127.0.0.1:"+at, "loopback", "--egress-allow 127.0.0.1:"+at)

	for _, entry := range []string{"127.0.0.1:" + at, "127.0.0.1:*", " 127.0.0.1:" + at + " ", "[::ffff:127.0.0.1]:" + at} {
		if body, err := get(guard(t, Policy{Allow: []string{entry}}), server.URL); body != "hello" || err != nil {
			t.Errorf("with %q: %q, %v", entry, body, err)
		}
	}
	for _, entry := range []string{"127.0.0.1:1", "127.0.0.2:*", "localhost:" + at} {
		_, err := get(guard(t, Policy{Allow: []string{entry}}), server.URL)
		wantRefused(t, err, "loopback")
	}
}

func TestANameIsJudgedByWhereItLeads(t *testing.T) {
	server := served(t, "hello")
	at := port(t, server)
	for _, name := range []string{"localhost", "LOCALHOST"} {
		_, err := get(guard(t, Policy{}), "http://"+name+":"+at)
		wantRefused(t, err, "localhost:"+at+" (", "loopback", "--egress-allow localhost:"+at)
	}
	if body, err := get(guard(t, Policy{Allow: []string{"localhost:" + at}}), "http://LocalHost:"+at); body != "hello" || err != nil {
		t.Fatalf("%q, %v", body, err)
	}
}

func TestARedirectIsGuardedToo(t *testing.T) {
	inner := served(t, "secret")
	outer := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:"+port(t, inner), http.StatusFound))
	t.Cleanup(outer.Close)
	_, err := get(guard(t, Policy{Allow: []string{"127.0.0.1:" + port(t, outer)}}), outer.URL)
	wantRefused(t, err, "127.0.0.1:"+port(t, inner))
}

func TestWhatIsNeverAllowed(t *testing.T) {
	g := guard(t, Policy{Allow: []string{"metadata.google.internal:80", "127.0.0.1:*"}})
	for _, address := range []string{
		"http://169.254.169.254/latest", "http://[::ffff:a9fe:a9fe]/", "http://[fe80::1%25eth0]/", "http://0.0.0.0:80/",
		"http://[::]:80/", "http://metadata.google.internal/", "http://Metadata/", "http://[64:ff9b::a9fe:a9fe]/",
		"http://100.100.100.200/",
	} {
		_, err := get(g, address)
		wantRefused(t, err, "never allowed")
	}
	for _, entry := range []string{"169.254.169.254:80", "[fe80::1]:80", "*:80", "x", "x:", ":80", "http://x:80", "x:http", "x:99999", "a*:80"} {
		if _, err := New(Policy{Allow: []string{entry}}); err == nil || !strings.Contains(err.Error(), "--egress-allow") {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

func TestTheAPIServerNeedsAnEntry(t *testing.T) {
	server := "https://192.0.2.7:6443"
	for _, row := range []struct {
		allow  []string
		target string
		want   string
	}{
		{nil, "https://192.0.2.7:6443", "own API server"},
		{nil, "https://192.0.2.7:06443", "--egress-allow 192.0.2.7:6443"},
		{nil, "https://[::ffff:192.0.2.7]:6443", "own API server"},
		{nil, "https://[64:ff9b::192.0.2.7]:6443", "own API server"},
		{nil, "https://192.0.2.7:6444", ""},
		{nil, "https://192.0.2.8:6443", ""},
		{[]string{"192.0.2.7:6443"}, "https://192.0.2.7:6443", ""},
	} {
		target, err := url.Parse(row.target)
		if err != nil {
			t.Fatal(err)
		}
		err = guard(t, Policy{Allow: row.allow, APIServers: []string{server}}).CheckURL(context.Background(), target)
		if row.want == "" && err != nil {
			t.Errorf("%s: %v", row.target, err)
		} else if row.want != "" {
			wantRefused(t, err, row.want)
		}
	}
}

// The name of a protected server is resolved, so that its address does not lead round the guard.
func TestAProtectedNameIsResolved(t *testing.T) {
	g := guard(t, Policy{APIServers: []string{"localhost:6443"}})
	if !g.isProtected(context.Background(), endpoint{"127.0.0.1", "6443"}, netip.MustParseAddr("127.0.0.1")) {
		t.Fatal("the address of a protected name is not protected")
	}
	if g.isProtected(context.Background(), endpoint{"127.0.0.1", "443"}, netip.MustParseAddr("127.0.0.1")) {
		t.Fatal("another port is protected")
	}
}

func TestOnlyTCP(t *testing.T) {
	_, err := guard(t, Policy{}).DialContext(context.Background(), "unix", "/tmp/x")
	wantRefused(t, err, "only TCP")
}

// A proxy would connect in our place: it never hears of an address that is refused.
func TestAProxyIsNoWayRound(t *testing.T) {
	proxy := served(t, "from the proxy")
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	through := func(g *Guard, address string) (string, error) {
		transport := g.Transport(nil)
		transport.Proxy = g.Proxy(http.ProxyURL(at))
		client := http.Client{Transport: transport}
		response, err := client.Get(address)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	}
	g := guard(t, Policy{Allow: []string{at.Host}})
	for _, address := range []string{"http://charts.invalid/", "http://192.0.2.1/"} {
		if body, err := through(g, address); body != "from the proxy" || err != nil {
			t.Errorf("%s: %q, %v", address, body, err)
		}
	}
	for _, address := range []string{"http://169.254.169.254/", "http://localhost:9/", "http://metadata.google.internal/"} {
		_, err := through(g, address)
		wantRefused(t, err)
	}
	_, err = through(guard(t, Policy{}), "http://192.0.2.1/")
	wantRefused(t, err, "loopback") // the proxy's own address
}
