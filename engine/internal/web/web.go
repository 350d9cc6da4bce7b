// Package web sends one HTTP request to an address that a user gave.
//
// The rule to keep: a message names the host and nothing more of a URL. Paths and queries of webhooks are often the
// only secret they have.
package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const (
	usualTimeout   = 10 * time.Second
	longestTimeout = 5 * time.Minute
	usualReply     = 1 << 20
	largestReply   = 16 << 20
	mostRedirects  = 10
)

// ownHeaders are the client's to set: a user's would make one request look like two, or like another host's.
var ownHeaders = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Proxy-Authorization", "Proxy-Connection"}

// Send sends one request and reads the answer. Connections are not kept: requests to one place are rare, and no
// credential of one request may serve another.
func Send(ctx context.Context, guard *egress.Guard, ask *enginev1.HttpRequest) (*enginev1.HttpReply, error) {
	limit := bounded(time.Duration(ask.GetTimeoutMs())*time.Millisecond, usualTimeout, longestTimeout)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := newRequest(ctx, ask)
	if err != nil {
		return nil, err
	}
	settings, err := tlsOf(ask)
	if err != nil {
		return nil, err
	}
	transport := guard.Transport(settings)
	transport.DisableKeepAlives = true
	client := http.Client{Transport: transport, CheckRedirect: redirects(int(ask.GetMaxRedirects()))}
	response, err := client.Do(request)
	if err != nil {
		return nil, unreachable(request.URL, err)
	}
	defer func() { _ = response.Body.Close() }()
	most := bounded(ask.GetMaxReplyBytes(), usualReply, largestReply)
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err != nil {
		return nil, unreachable(request.URL, err)
	}
	reply := &enginev1.HttpReply{Status: int32(response.StatusCode), Body: body}
	if int64(len(body)) > most {
		reply.Body, reply.Truncated = body[:most], true
	}
	for name, values := range response.Header {
		for _, value := range values {
			reply.Headers = append(reply.Headers, &enginev1.HttpHeader{Name: name, Value: strings.ToValidUTF8(value, "\uFFFD")})
		}
	}
	return reply, nil
}

func newRequest(ctx context.Context, ask *enginev1.HttpRequest) (*http.Request, error) {
	target, err := url.Parse(ask.GetUrl())
	if err != nil || target.Host == "" || (target.Scheme != "http" && target.Scheme != "https") {
		return nil, fault.New(enginev1.Fault_INVALID, "the address is not an http:// or https:// URL")
	}
	if target.User != nil {
		return nil, fault.New(enginev1.Fault_INVALID, "the URL at %s carries a user: put credentials into a header", target.Host)
	}
	request, err := http.NewRequestWithContext(ctx, strings.ToUpper(ask.GetMethod()), target.String(), bytes.NewReader(ask.GetBody()))
	if err != nil {
		return nil, fault.New(enginev1.Fault_INVALID, "the request to %s cannot be made: the method or the URL is not valid", target.Host)
	}
	request.Header.Set("User-Agent", "pilothouse")
	for i, header := range ask.GetHeaders() {
		name := http.CanonicalHeaderKey(header.GetName())
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(header.GetValue()) {
			return nil, fault.New(enginev1.Fault_INVALID, "header %d of the request to %s is not valid", i+1, target.Host)
		}
		if slices.Contains(ownHeaders, name) {
			return nil, fault.New(enginev1.Fault_INVALID, "the header %s of the request to %s cannot be set", name, target.Host)
		}
		if name == "User-Agent" {
			request.Header.Del(name)
		}
		request.Header.Add(name, header.GetValue())
	}
	return request, nil
}

// redirects follows up to so many, and takes every header of the caller's off what leaves the first host. A body does
// not leave it at all.
func redirects(most int) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		if len(via) > min(most, mostRedirects) {
			return http.ErrUseLastResponse
		}
		first := via[0].URL
		if next.URL.Scheme != first.Scheme || next.URL.Host != first.Host {
			if next.Method != http.MethodGet && next.Method != http.MethodHead {
				return http.ErrUseLastResponse
			}
			next.Header = http.Header{"User-Agent": via[0].Header["User-Agent"]}
		}
		return nil
	}
}

func tlsOf(ask *enginev1.HttpRequest) (*tls.Config, error) {
	settings := &tls.Config{
		ServerName:         ask.GetTlsServerName(),
		InsecureSkipVerify: ask.GetInsecureSkipTlsVerify(), //nolint:gosec // asked for by name
		MinVersion:         tls.VersionTLS12,
	}
	if bundle := ask.GetCaBundle(); len(bundle) > 0 {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(bundle) {
			return nil, fault.New(enginev1.Fault_INVALID, "the CA bundle holds no PEM certificate")
		}
	}
	if len(ask.GetClientCertificate()) > 0 || len(ask.GetClientKey()) > 0 {
		pair, err := tls.X509KeyPair(ask.GetClientCertificate(), ask.GetClientKey())
		if err != nil {
			return nil, fault.New(enginev1.Fault_INVALID, "the client certificate and its key are not a matching PEM pair")
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}

func unreachable(target *url.URL, err error) error {
	if errors.Is(err, egress.ErrRefused) {
		return err
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the URL around it is not for messages
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(enginev1.Fault_UNREACHABLE, err, "%s did not answer in time", target.Host)
	case errors.Is(err, context.Canceled):
		return fault.Wrap(enginev1.Fault_CANCELLED, err, "the request to %s was cancelled", target.Host)
	}
	return fault.Wrap(enginev1.Fault_UNREACHABLE, err, "%s does not answer: %v", target.Host, err)
}

func bounded[T int64 | time.Duration](asked, usual, most T) T {
	if asked <= 0 {
		return usual
	}
	return min(asked, most)
}
