package identity

import (
	"io"
	"net/http"
)

// Wrap puts a token on every request that goes through next.
func (t *Tokens) Wrap(next http.RoundTripper) http.RoundTripper {
	return &authenticator{tokens: t, next: next}
}

type authenticator struct {
	tokens *Tokens
	next   http.RoundTripper
}

// RoundTrip sends the request; if the cluster refuses the token, once more with a new one. The token may have been
// revoked, or the key behind it rotated, long before its end.
func (a *authenticator) RoundTrip(request *http.Request) (*http.Response, error) {
	token, err := a.tokens.get(request.Context())
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // a RoundTripper closes it also on errors
		}
		return nil, err
	}
	response, err := a.send(request, request.Body, token)
	if err != nil || response.StatusCode != http.StatusUnauthorized || !a.tokens.forget(token) {
		return response, err
	}
	body, ok := again(request)
	if !ok {
		return response, nil
	}
	// The cluster's own answer says more than a failure to get another token.
	fresh, err := a.tokens.get(request.Context())
	if err != nil || fresh == token {
		if body != nil {
			_ = body.Close()
		}
		return response, nil
	}
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10) // so that the connection can be used again
	_ = response.Body.Close()
	return a.send(request, body, fresh)
}

func (a *authenticator) send(request *http.Request, body io.ReadCloser, token string) (*http.Response, error) {
	signed := request.Clone(request.Context()) // a RoundTripper must not change its request
	signed.Body = body
	signed.Header.Set("Authorization", "Bearer "+token)
	return a.next.RoundTrip(signed)
}

// again gives the body once more; a stream has been read and cannot be sent twice.
func again(request *http.Request) (io.ReadCloser, bool) {
	if request.Body == nil || request.Body == http.NoBody {
		return request.Body, true
	}
	if request.GetBody == nil {
		return nil, false
	}
	body, err := request.GetBody()
	return body, err == nil
}

// WrappedRoundTripper lets client-go find the transport below, to close its idle connections.
func (a *authenticator) WrappedRoundTripper() http.RoundTripper { return a.next }
