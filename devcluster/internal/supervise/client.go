package supervise

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const pollInterval = 20 * time.Millisecond

// client asks the API server the few things a start needs, as the administrator.
type client struct {
	server string
	http   *http.Client
}

func newClient(server string, identities identities) (*client, error) {
	pair, err := tls.X509KeyPair(identities["admin"].certificate, identities["admin"].key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(identities["ca"].parsed)
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12,
	}}
	return &client{server: server, http: &http.Client{Transport: transport}}, nil
}

// waitForAnswer returns when the API server answers at all, ready or not.
func (c *client) waitForAnswer(ctx context.Context) error {
	return poll(ctx, "kube-apiserver to answer", func() error {
		var status statusError
		if err := c.get(ctx, "/livez", nil); err != nil && !errors.As(err, &status) {
			return err
		}
		return nil
	})
}

// waitForAPI returns when the API server says that it is ready, its bootstrap roles included.
func (c *client) waitForAPI(ctx context.Context) error {
	return poll(ctx, "kube-apiserver to be ready", func() error {
		return c.get(ctx, "/readyz", nil)
	})
}

// create is content if the object is already there.
func (c *client) create(ctx context.Context, path string, object any) error {
	err := c.do(ctx, http.MethodPost, path, object, nil)
	var status statusError
	if errors.As(err, &status) && status == http.StatusConflict {
		return nil
	}
	return err
}

func (c *client) get(ctx context.Context, path string, answer any) error {
	return c.do(ctx, http.MethodGet, path, nil, answer)
}

// statusError is an answer other than success.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("the API server answered %d", int(s)) }

func (c *client) do(ctx context.Context, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var payload io.Reader
	if body != nil {
		content, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(content)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, payload)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return statusError(response.StatusCode)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(content, answer)
}

// waitForSocket returns when something accepts connections on a Unix socket.
func waitForSocket(ctx context.Context, path string) error {
	return poll(ctx, "etcd to accept connections", func() error {
		connection, err := net.Dial("unix", path)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// poll tries until it succeeds or the context ends, which may be because a component died.
func poll(ctx context.Context, what string, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			cause := context.Cause(ctx)
			var failed *componentError
			if errors.As(cause, &failed) || errors.Is(cause, errStopRequested) {
				return cause
			}
			return fmt.Errorf("%w: still waiting for %s (%w)", cause, what, err)
		case <-time.After(pollInterval):
		}
	}
}
