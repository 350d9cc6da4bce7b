package gitsource

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const (
	maxRedirects = 5
	infoRefs     = "/info/refs"
)

// httpWire is git's smart HTTP protocol.
type httpWire struct {
	client      *http.Client
	transport   *http.Transport
	base        *url.URL
	place       string
	credentials Credentials
	basic       bool
}

func (f *Fetcher) newHTTP(at address, request Request) (wire, error) {
	settings, err := tlsOf(request)
	if err != nil {
		return nil, err
	}
	credentials := request.Credentials
	if credentials.Username == "" {
		credentials.Username = at.user
	}
	transport := f.guard.Transport(settings)
	made := &httpWire{
		transport: transport, place: at.shown(), credentials: credentials,
		// A user in the URL alone is a habit, not a credential.
		basic: credentials.Password != "" || request.Credentials.Username != "",
		base:  &url.URL{Scheme: at.scheme, Host: at.hostPort(), Path: strings.TrimRight(at.path, "/")},
	}
	made.client = &http.Client{Transport: transport, CheckRedirect: made.redirect}
	return made, nil
}

// redirect stays at the host the user named: credentials were given for that one.
func (w *httpWire) redirect(next *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return invalid("%s redirects more than %d times", w.place, maxRedirects)
	}
	if next.URL.Scheme != w.base.Scheme || next.URL.Hostname() != w.base.Hostname() || portOf(next.URL) != portOf(w.base) {
		return invalid("%s redirects to %s://%s: use the repository's address there", w.place, next.URL.Scheme, next.URL.Host)
	}
	return nil
}

func portOf(u *url.URL) string {
	return orElse(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

func (w *httpWire) advertise(ctx context.Context) (io.ReadCloser, error) {
	target := *w.base
	target.Path += infoRefs
	target.RawQuery = "service=git-upload-pack"
	response, err := w.send(ctx, http.MethodGet, &target, nil)
	if err != nil {
		return nil, err
	}
	if kind := response.Header.Get("Content-Type"); kind != "application/x-git-upload-pack-advertisement" {
		_ = response.Body.Close()
		return nil, notFound("there is no git repository at %s: the server answers with something else", w.place)
	}
	// The server may have moved it; what follows goes where this came from.
	w.base.Path = strings.TrimSuffix(response.Request.URL.Path, infoRefs)
	return response.Body, nil
}

func (w *httpWire) exchange(ctx context.Context, request []byte) (io.ReadCloser, error) {
	target := *w.base
	target.Path += "/git-upload-pack"
	response, err := w.send(ctx, http.MethodPost, &target, request)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

func (w *httpWire) send(ctx context.Context, method string, target *url.URL, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, invalid("git.url is not a usable URL")
	}
	request.Header.Set("User-Agent", "git/pilothouse") // some servers speak git only to git
	if body != nil {
		request.Header.Set("Content-Type", "application/x-git-upload-pack-request")
		request.Header.Set("Accept", "application/x-git-upload-pack-result")
	}
	switch {
	case w.credentials.Bearer != "":
		request.Header.Set("Authorization", "Bearer "+w.credentials.Bearer)
	case w.basic:
		// Servers that take a token as the password ask for any user, but for one.
		request.SetBasicAuth(orElse(w.credentials.Username, "git"), w.credentials.Password)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return nil, bare(err)
	}
	if err := w.status(response.StatusCode); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

func (w *httpWire) status(code int) error {
	switch code {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		if w.credentials.Bearer == "" && !w.basic {
			return fault.New(enginev1.Fault_CHART_UNAVAILABLE, "%s wants credentials, and none were given (HTTP %d)", w.place, code)
		}
		return fault.New(enginev1.Fault_CHART_UNAVAILABLE, "%s refused the credentials (HTTP %d)", w.place, code)
	case http.StatusNotFound, http.StatusGone:
		return notFound("there is no repository at %s, or these credentials may not read it (HTTP %d)", w.place, code)
	}
	return fault.New(enginev1.Fault_CHART_UNAVAILABLE, "%s answered HTTP %d", w.place, code)
}

func (w *httpWire) close() { w.transport.CloseIdleConnections() }

// bare is an error of the client without the URL around it.
func bare(err error) error {
	if wrapped, ok := err.(*url.Error); ok { //nolint:errorlint // the client's own, outermost
		return wrapped.Err
	}
	return err
}

func tlsOf(request Request) (*tls.Config, error) {
	settings := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: request.InsecureSkipTLSVerify, //nolint:gosec // asked for by name
	}
	if len(request.CABundle) > 0 {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(request.CABundle) {
			return nil, invalid("the CA bundle for git holds no PEM certificate")
		}
	}
	if len(request.ClientCertificate) > 0 || len(request.ClientKey) > 0 {
		pair, err := tls.X509KeyPair(request.ClientCertificate, request.ClientKey)
		if err != nil {
			return nil, invalid("the client certificate for git and its key are not a matching PEM pair")
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}
