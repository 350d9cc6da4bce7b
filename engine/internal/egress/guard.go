package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// ErrRefused is the cause of every refusal; errors.Is finds it below whatever a client wraps around it. The error
// itself is a fault of kind INVALID: trying again would not help.
var ErrRefused = errors.New("refused by the egress guard")

// Flag is what an operator writes to allow an address.
const Flag = "--egress-allow"

const (
	dialTimeout = 10 * time.Second
	keepAlive   = 30 * time.Second
	// lookupLife is how long the addresses of a protected name are believed.
	lookupLife    = time.Minute
	lookupTimeout = 3 * time.Second
	// lookupRest is how long a name that cannot be resolved is not asked for again.
	lookupRest = 10 * time.Second
)

// Policy is what the operator says.
type Policy struct {
	// Allow lists host:port pairs that may be connected to although they are loopback or an API server's. The host
	// is compared as it is written in the URL or as the address it leads to; there are no patterns, except that the
	// port may be * for any port of exactly that host.
	Allow []string
	// APIServers are the management cluster's: URLs or host:port.
	APIServers []string
}

// Guard dials on behalf of users. It is safe for concurrent use.
type Guard struct {
	allowed  []endpoint
	resolver *net.Resolver

	mutex     sync.Mutex
	protected map[endpoint]*lookup
}

// endpoint is a host (lower case, no trailing dot) or address, and a port or *.
type endpoint struct {
	host string
	port string
}

// lookup is what a protected host resolves to.
type lookup struct {
	addresses []netip.Addr
	until     time.Time
}

// New reads a policy.
func New(policy Policy) (*Guard, error) {
	guard := &Guard{resolver: net.DefaultResolver, protected: map[endpoint]*lookup{}}
	for _, text := range policy.Allow {
		entry, err := parseEntry(text)
		if err != nil {
			return nil, err
		}
		guard.allowed = append(guard.allowed, entry)
	}
	for _, server := range policy.APIServers {
		if err := guard.Protect(server); err != nil {
			return nil, err
		}
	}
	return guard, nil
}

// Protect keeps users away from an API server, given as a URL or host:port.
func (g *Guard) Protect(server string) error {
	host, port, err := hostPort(server)
	if err != nil {
		return err
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	at := endpoint{normal(host), port}
	if g.protected[at] == nil {
		g.protected[at] = &lookup{}
	}
	return nil
}

// DialContext connects to a user's address, or says why not.
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if !slices.Contains([]string{"tcp", "tcp4", "tcp6"}, network) {
		return nil, refusal("connecting over %s is refused: only TCP is possible", network)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, refusal("%q is not a host and a port", address)
	}
	asked := endpoint{normal(host), port}
	if err := g.checkName(asked); err != nil {
		return nil, err
	}
	dialer := net.Dialer{
		Timeout:   dialTimeout,
		KeepAlive: keepAlive,
		Resolver:  g.resolver,
		// Called with the very address the socket is about to connect to.
		ControlContext: func(ctx context.Context, _, connecting string, _ syscall.RawConn) error {
			found, err := netip.ParseAddrPort(connecting)
			if err != nil {
				return refusal("%q is not an address", connecting)
			}
			// The port as a number: it may be spelt "https" or "0443" in a URL.
			return g.check(ctx, endpoint{asked.host, strconv.Itoa(int(found.Port()))}, found.Addr())
		},
	}
	connection, err := dialer.DialContext(ctx, network, address)
	var refused *fault.Error
	if errors.As(err, &refused) {
		return nil, refused // without the dialer's own words around it
	}
	return connection, err
}

// CheckURL judges what can be judged without resolving a name, so that a wrong address in a user's object is told
// before anything is tried.
func (g *Guard) CheckURL(ctx context.Context, target *url.URL) error {
	host, port, err := hostPort(target.String())
	if err != nil {
		return err
	}
	asked := endpoint{normal(host), port}
	if err := g.checkName(asked); err != nil {
		return err
	}
	if address, err := netip.ParseAddr(asked.host); err == nil {
		return g.check(ctx, asked, address)
	}
	return nil
}

func (g *Guard) checkName(asked endpoint) error {
	if slices.Contains(metadataNames, asked.host) {
		return refusal("connecting to %s is refused: it is a cloud's metadata service, which is never allowed", asked)
	}
	return nil
}

// check judges one address that a host led to.
func (g *Guard) check(ctx context.Context, asked endpoint, address netip.Addr) error {
	address = address.Unmap().WithZone("")
	what := asked.String()
	if address.String() != asked.host {
		what += " (" + address.String() + ")"
	}
	kind := classify(address)
	if kind == forbidden {
		return refusal("connecting to %s is refused: it is a link-local, metadata, multicast or unspecified address, "+
			"which is never allowed", what)
	}
	if g.allows(asked, address) {
		return nil
	}
	why := ""
	switch {
	case kind == loopback:
		why = "a loopback address"
	case g.isProtected(ctx, asked, address):
		why = "the address of the controller's own API server"
	default:
		return nil
	}
	return refusal("connecting to %s is refused: it is %s; the operator can allow it with %s %s", what, why, Flag, asked)
}

func (g *Guard) allows(asked endpoint, address netip.Addr) bool {
	return slices.ContainsFunc(g.allowed, func(entry endpoint) bool {
		return (entry.port == "*" || entry.port == asked.port) &&
			(entry.host == asked.host || entry.host == address.String())
	})
}

func (g *Guard) isProtected(ctx context.Context, asked endpoint, address netip.Addr) bool {
	g.mutex.Lock()
	var servers []endpoint
	for server := range g.protected {
		if server.port == asked.port {
			servers = append(servers, server)
		}
	}
	g.mutex.Unlock()
	return slices.ContainsFunc(servers, func(server endpoint) bool {
		if server.host == asked.host {
			return true
		}
		return slices.ContainsFunc(meanings(address), func(one netip.Addr) bool {
			return slices.Contains(g.addressesOf(ctx, server), one)
		})
	})
}

// addressesOf resolves a protected host, and believes the answer for a while. If the name cannot be resolved now,
// what was known before is still better than nothing.
func (g *Guard) addressesOf(ctx context.Context, server endpoint) []netip.Addr {
	if address, err := netip.ParseAddr(server.host); err == nil {
		return []netip.Addr{address}
	}
	g.mutex.Lock()
	known := *g.protected[server]
	g.mutex.Unlock()
	if time.Now().Before(known.until) {
		return known.addresses
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := g.resolver.LookupNetIP(ctx, "ip", server.host)
	life := lookupLife
	if err != nil {
		found, life = known.addresses, lookupRest
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.protected[server] = &lookup{addresses: found, until: time.Now().Add(life)}
	return found
}

func (e endpoint) String() string { return net.JoinHostPort(e.host, e.port) }

func refusal(format string, args ...any) error {
	return fault.Wrap(enginev1.Fault_INVALID, ErrRefused, format, args...)
}

// parseEntry reads one entry of the allow list.
func parseEntry(text string) (endpoint, error) {
	host, port, err := net.SplitHostPort(strings.TrimSpace(text))
	if err != nil || host == "" || port == "" || strings.ContainsAny(host, "*/@ ") {
		return endpoint{}, fmt.Errorf("%s takes an exact host:port (or host:*), and %q is none", Flag, text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil && port != "*" {
		return endpoint{}, fmt.Errorf("%s takes a port number or *, and %q has neither", Flag, text)
	}
	entry := endpoint{normal(host), port}
	if address, err := netip.ParseAddr(entry.host); err == nil && classify(address) == forbidden {
		return endpoint{}, fmt.Errorf("%s cannot allow %s: link-local, metadata, multicast and unspecified addresses are always refused", Flag, text)
	}
	return entry, nil
}

// hostPort reads a URL or host:port; a URL without a port has its scheme's.
func hostPort(text string) (string, string, error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Hostname() == "" {
		return "", "", refusal("a URL without a host cannot be connected to")
	}
	port := parsed.Port()
	if port == "" {
		port = map[string]string{"http": "80", "ssh": "22", "socks5": "1080"}[strings.ToLower(parsed.Scheme)]
	}
	if port == "" {
		port = "443"
	}
	port = strings.TrimLeft(port, "0")
	return parsed.Hostname(), port, nil
}

// normal is the one spelling of a host: addresses as Go prints them, names in lower case without the final dot.
func normal(host string) string {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Unmap().WithZone("").String()
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}
