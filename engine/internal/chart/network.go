package chart

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// maxTransports bounds what users can make us keep by naming ever new CA bundles.
const maxTransports = 256

var errIdle = errors.New("it sent nothing for too long")

// Network makes the connections to sources: the one place for limits, TLS settings and the egress guard.
// Connections are shared between requests with the same TLS settings; credentials travel with each request.
type Network struct {
	options Options
	mutex   sync.Mutex
	made    map[string]*http.Transport
}

func newNetwork(options Options) *Network {
	return &Network{options: options, made: map[string]*http.Transport{}}
}

// Dial opens a connection the way all others are opened.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if n.options.DialContext != nil {
		return n.options.DialContext(ctx, network, address)
	}
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return dialer.DialContext(ctx, network, address)
}

func (n *Network) proxy(request *http.Request) (*url.URL, error) {
	if n.options.Proxy != nil {
		return n.options.Proxy(request)
	}
	return http.ProxyFromEnvironment(request)
}

// Client returns an HTTP client for one request's source.
func (n *Network) Client(source *enginev1.ChartSource) (*http.Client, error) {
	abroad, err := n.transport(source, false)
	if err != nil {
		return nil, err
	}
	trip := &traveller{abroad: abroad, idle: n.options.Idle}
	if len(source.GetClientCertificate()) > 0 {
		if home, err := url.Parse(location(source)); err == nil {
			trip.home = home.Host
		}
		if trip.athome, err = n.transport(source, true); err != nil {
			return nil, err
		}
	}
	return &http.Client{Timeout: n.options.Timeout, Transport: trip, CheckRedirect: redirect}, nil
}

func (n *Network) transport(source *enginev1.ChartSource, certified bool) (*http.Transport, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%v %d ", source.GetInsecureSkipTlsVerify(), len(source.GetCaBundle()))
	hash.Write(source.GetCaBundle())
	if certified {
		fmt.Fprintf(hash, " %d ", len(source.GetClientCertificate()))
		hash.Write(source.GetClientCertificate())
		hash.Write(source.GetClientKey())
	}
	key := hex.EncodeToString(hash.Sum(nil))
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if made, ok := n.made[key]; ok {
		return made, nil
	}
	settings, err := tlsSettings(source, certified)
	if err != nil {
		return nil, err
	}
	made := &http.Transport{
		Proxy:                 n.proxy,
		DialContext:           n.Dial,
		TLSClientConfig:       settings,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: n.options.Idle,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   8,
		ForceAttemptHTTP2:     true,
	}
	if len(n.made) >= maxTransports {
		for _, old := range n.made {
			old.CloseIdleConnections()
		}
		n.made = map[string]*http.Transport{}
	}
	n.made[key] = made
	return made, nil
}

func tlsSettings(source *enginev1.ChartSource, certified bool) (*tls.Config, error) {
	settings := &tls.Config{InsecureSkipVerify: source.GetInsecureSkipTlsVerify()} //nolint:gosec // asked for by name
	if bundle := source.GetCaBundle(); len(bundle) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(bundle) {
			return nil, invalid("caBundle holds no PEM certificate")
		}
		settings.RootCAs = pool
	}
	if certified {
		pair, err := tls.X509KeyPair(source.GetClientCertificate(), source.GetClientKey())
		if err != nil { // the error may quote the key
			return nil, invalid("the pull secret's tls.crt and tls.key are not a PEM certificate and its key")
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}

// traveller shows the client certificate to the source's own host only, and ends answers that stand still.
type traveller struct {
	abroad *http.Transport
	athome *http.Transport // nil without a client certificate
	home   string
	idle   time.Duration
}

func (t *traveller) RoundTrip(request *http.Request) (*http.Response, error) {
	way := t.abroad
	if t.athome != nil && request.URL.Host == t.home && request.URL.Scheme == "https" {
		way = t.athome
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	response, err := way.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	response.Body = newWatched(ctx, cancel, response.Body, t.idle)
	return response, nil
}

// watched is a body that may take long, but not stand still. Its time runs only while somebody reads.
type watched struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   time.Duration
	timer  *time.Timer
}

func newWatched(ctx context.Context, cancel context.CancelCauseFunc, body io.ReadCloser, idle time.Duration) *watched {
	timer := time.AfterFunc(idle, func() { cancel(errIdle) })
	timer.Stop()
	return &watched{body, ctx, cancel, idle, timer}
}

func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(w.idle)
	n, err := w.ReadCloser.Read(p)
	w.timer.Stop()
	if err != nil && errors.Is(context.Cause(w.ctx), errIdle) {
		return n, errIdle
	}
	return n, err
}

func (w *watched) Close() error {
	w.timer.Stop()
	err := w.ReadCloser.Close()
	w.cancel(nil)
	return err
}

// redirect keeps credentials at the host, port and scheme they were meant for: net/http itself compares host
// names only, and takes away too little.
func redirect(next *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	first := via[0].URL
	if next.URL.Scheme != first.Scheme || next.URL.Host != first.Host {
		for _, header := range []string{"Authorization", "Cookie", "Referer", "If-None-Match", "If-Modified-Since"} {
			next.Header.Del(header)
		}
	}
	return nil
}
