package egress

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// ProxyFunc chooses the proxy of a request, as http.Transport takes it.
type ProxyFunc = func(*http.Request) (*url.URL, error)

// Transport is an HTTP transport whose every connection is guarded. The caller may still change its limits.
func (g *Guard) Transport(settings *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:               g.Proxy(http.ProxyFromEnvironment),
		DialContext:         g.DialContext,
		TLSClientConfig:     settings,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 8,
		ForceAttemptHTTP2:   true,
	}
}

// Proxy keeps a proxy from being the way round the guard: it connects in our place, and to wherever it is told. So
// the target is judged before the proxy hears of it. A name this machine cannot resolve is the proxy's to judge: in
// networks with a proxy that is the usual case. The connection to the proxy itself is guarded like any other.
func (g *Guard) Proxy(choose ProxyFunc) ProxyFunc {
	return func(request *http.Request) (*url.URL, error) {
		proxy, err := choose(request)
		if proxy == nil || err != nil {
			return proxy, err
		}
		return proxy, g.checkTarget(request.Context(), request.URL)
	}
}

func (g *Guard) checkTarget(ctx context.Context, target *url.URL) error {
	if err := g.CheckURL(ctx, target); err != nil {
		return err
	}
	host, port, err := hostPort(target.String())
	if err != nil {
		return err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return nil // judged above
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := g.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil //nolint:nilerr // the proxy may know the name
	}
	for _, address := range found {
		if err := g.check(ctx, endpoint{normal(host), port}, address); err != nil {
			return err
		}
	}
	return nil
}
