package egress

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer answers every question for an IPv4 address with the next of its answers, the last one for ever.
type nameServer struct {
	connection net.PacketConn
	answers    []netip.Addr
	asked      atomic.Int64
}

func newNameServer(t *testing.T, answers ...string) *nameServer {
	t.Helper()
	connection, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &nameServer{connection: connection, answers: addresses(answers...)}
	t.Cleanup(func() { _ = connection.Close() })
	go server.serve()
	return server
}

func (s *nameServer) serve() {
	buffer := make([]byte, 1500)
	for {
		n, from, err := s.connection.ReadFrom(buffer)
		if err != nil {
			return
		}
		var message dnsmessage.Message
		if message.Unpack(buffer[:n]) != nil || len(message.Questions) == 0 {
			continue
		}
		question := message.Questions[0]
		message.Response, message.Additionals = true, nil
		if question.Type == dnsmessage.TypeA {
			at := min(int(s.asked.Add(1)), len(s.answers)) - 1
			message.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
				Body:   &dnsmessage.AResource{A: s.answers[at].As4()},
			}}
		}
		if packed, err := message.Pack(); err == nil {
			_, _ = s.connection.WriteTo(packed, from)
		}
	}
}

func (s *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", s.connection.LocalAddr().String())
	}}
}

// Between a check and the connection the answer changes: what counts is the address of the connection.
func TestRebindingGainsNothing(t *testing.T) {
	inner := served(t, "secret")
	names := newNameServer(t, "192.0.2.1", "127.0.0.1")
	g := guard(t, Policy{})
	g.resolver = names.resolver()
	first, err := g.resolver.LookupNetIP(context.Background(), "ip4", "rebind.test")
	if err != nil || len(first) != 1 || first[0].String() != "192.0.2.1" {
		t.Fatalf("the innocent answer: %v, %v", first, err)
	}
	_, err = get(g, "http://rebind.test:"+port(t, inner))
	wantRefused(t, err, "rebind.test:", "(127.0.0.1)")
	if names.asked.Load() < 2 {
		t.Fatal("the name was not resolved again")
	}
	_, err = get(g, "http://rebind.test:"+port(t, inner))
	wantRefused(t, err, "rebind.test:")
}

// An address entry allows that address by any name: a name gives nobody more than the address itself.
func TestAnAddressEntryHoldsForItsNames(t *testing.T) {
	inner := served(t, "hello")
	names := newNameServer(t, "127.0.0.1")
	g := guard(t, Policy{Allow: []string{"127.0.0.1:" + port(t, inner)}})
	g.resolver = names.resolver()
	if body, err := get(g, "http://charts.test:"+port(t, inner)); body != "hello" || err != nil {
		t.Fatalf("%q, %v", body, err)
	}
}
