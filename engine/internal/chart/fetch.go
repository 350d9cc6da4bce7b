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
	"strings"
	"sync"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/getterplugin"
)

// clients are HTTP clients by TLS settings, so that connections are reused between releases of one source.
// Credentials are no part of a client: they travel with each request.
type clients struct {
	options Options
	mutex   sync.Mutex
	made    map[string]*http.Client
}

func newClients(options Options) *clients {
	return &clients{options: options, made: map[string]*http.Client{}}
}

func (c *clients) of(source *enginev1.ChartSource) (*http.Client, error) {
	sum := sha256.Sum256(source.GetCaBundle())
	key := fmt.Sprintf("%v %s", source.GetInsecureSkipTlsVerify(), hex.EncodeToString(sum[:]))
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if client, ok := c.made[key]; ok {
		return client, nil
	}
	settings := &tls.Config{InsecureSkipVerify: source.GetInsecureSkipTlsVerify()} //nolint:gosec // asked for by name
	if bundle := source.GetCaBundle(); len(bundle) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(bundle) {
			return nil, unavailable("the CA bundle for charts holds no certificate")
		}
		settings.RootCAs = pool
	}
	dial := c.options.DialContext
	if dial == nil {
		dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	proxy := c.options.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	client := &http.Client{
		Timeout: c.options.Timeout,
		Transport: &http.Transport{
			Proxy:                 proxy,
			DialContext:           dial,
			TLSClientConfig:       settings,
			TLSHandshakeTimeout:   10 * time.Second,
			ResponseHeaderTimeout: c.options.Timeout,
			IdleConnTimeout:       90 * time.Second,
			MaxIdleConnsPerHost:   8,
			ForceAttemptHTTP2:     true,
		},
		CheckRedirect: redirect,
	}
	if len(c.made) >= 256 {
		c.made = map[string]*http.Client{} // CA bundles come from users: bounded, rebuilt when needed
	}
	c.made[key] = client
	return client, nil
}

// redirect keeps credentials at the host, port and scheme they were meant for: net/http itself compares host
// names only.
func redirect(next *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	first := via[0].URL
	if next.URL.Scheme != first.Scheme || next.URL.Host != first.Host {
		for _, header := range []string{"Authorization", "Cookie", "Referer", "If-None-Match"} {
			next.Header.Del(header)
		}
	}
	return nil
}

// get fetches one URL; etag makes it conditional, and a nil body with no error means "not changed".
func (s *Store) get(ctx context.Context, source *enginev1.ChartSource, target *url.URL, etag string, limit int64) ([]byte, string, error) {
	if s.options.Plugins.Provides(target.Scheme) {
		user, password := credentials(source, target)
		body, err := s.options.Plugins.Get(ctx, target, getterplugin.Credentials{Username: user, Password: password}, limit)
		return body, "", err
	}
	client, err := s.http.of(source)
	if err != nil {
		return nil, "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, bare(target), nil)
	if err != nil {
		return nil, "", invalid("%s is not a usable URL", shown(target.String()))
	}
	request.Header.Set("User-Agent", "pilothouse-engine")
	if etag != "" {
		request.Header.Set("If-None-Match", etag)
	}
	if user, password := credentials(source, target); user != "" || password != "" {
		request.SetBasicAuth(user, password)
	}
	response, err := client.Do(request)
	if errors.Is(err, egress.ErrRefused) {
		return nil, "", err
	}
	if err != nil {
		return nil, "", unavailable("%s does not answer: %s", shown(target.String()), reason(err))
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotModified {
		return nil, etag, nil
	}
	if err := statusFault(response.StatusCode, target.String()); err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, "", unavailable("%s broke off: %s", shown(target.String()), reason(err))
	}
	if int64(len(body)) > limit {
		return nil, "", invalid("%s is larger than %d MiB", shown(target.String()), limit>>20)
	}
	return body, response.Header.Get("ETag"), nil
}

func statusFault(code int, target string) error {
	switch {
	case code == http.StatusOK:
		return nil
	case code == http.StatusNotFound || code == http.StatusGone:
		return notFound("%s does not exist (HTTP %d)", shown(target), code)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return unavailable("%s refused the credentials (HTTP %d)", shown(target), code)
	default:
		return unavailable("%s answered HTTP %d", shown(target), code)
	}
}

// credentials are the source's own for the host the source names, and none for any other host an index may
// point to.
func credentials(source *enginev1.ChartSource, target *url.URL) (string, string) {
	home, err := url.Parse(location(source))
	if err != nil || home.Host != target.Host || home.Scheme != target.Scheme {
		return "", ""
	}
	if source.GetUsername() != "" || source.GetPassword() != "" {
		return source.GetUsername(), source.GetPassword()
	}
	if home.User != nil {
		password, _ := home.User.Password()
		return home.User.Username(), password
	}
	return "", ""
}

func location(source *enginev1.ChartSource) string {
	if source.GetUrl() != "" {
		return source.GetUrl()
	}
	return source.GetRepository()
}

func bare(u *url.URL) string {
	without := *u
	without.User = nil
	return without.String()
}

// reason is why a request failed, without the URL (it may carry secrets) and in few words.
func reason(err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		if wrapped.Timeout() {
			return "timed out"
		}
		err = wrapped.Err
	}
	if errors.Is(err, context.Canceled) {
		return "cancelled"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "timed out"
	}
	return strings.TrimSpace(oneLine(err.Error()))
}
