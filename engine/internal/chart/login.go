package chart

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// hasLogin tells whether the request brings credentials, for whatever host.
func (a *Ask) hasLogin() bool {
	return a.strange || a.GetUsername() != "" || a.GetPassword() != "" || a.GetBearerToken() != "" ||
		len(a.GetDockerConfig()) > 0 || len(a.GetClientCertificate()) > 0
}

// registryClient shows a registry the request's credentials, or the machine's own where the request brings none.
func (a *Ask) registryClient(client *http.Client, host string, who login) remote.Client {
	speaker := &auth.Client{
		Client:     client,
		Header:     http.Header{"User-Agent": {"pilothouse-engine"}},
		Cache:      auth.NewCache(), // of this request: tokens are not shared between releases
		Credential: auth.StaticCredential(host, who.forRegistry()),
	}
	if who != (login{}) || a.hasLogin() || a.Network.options.Keychain == nil {
		return speaker
	}
	own := &asMachine{Client: speaker, keychain: a.Network.options.Keychain, host: host,
		verified: !a.GetPlainHttp() && !a.GetInsecureSkipTlsVerify()}
	speaker.Credential = own.credential
	return own
}

// asMachine asks the keychain when the registry asks for credentials. If that fails the registry is asked as nobody,
// since it may have public charts too; only when it refuses nobody is the failure of interest.
type asMachine struct {
	*auth.Client
	keychain func(ctx context.Context, host string, verified bool) (username, password string, err error)
	host     string
	verified bool
	mutex    sync.Mutex
	failed   error
}

func (m *asMachine) credential(ctx context.Context, host string) (auth.Credential, error) {
	if host != m.host {
		return auth.EmptyCredential, nil
	}
	username, password, err := m.keychain(ctx, host, m.verified)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.failed = err; err != nil {
		return auth.EmptyCredential, nil //nolint:nilerr // told if the registry refuses
	}
	return auth.Credential{Username: username, Password: password}, nil
}

// Do implements remote.Client.
func (m *asMachine) Do(request *http.Request) (*http.Response, error) {
	response, err := m.Client.Do(request)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.failed == nil {
		return response, err
	}
	var answer *errcode.ErrorResponse
	code := 0
	switch {
	case response != nil:
		code = response.StatusCode
	case errors.As(err, &answer):
		code = answer.StatusCode
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		code = http.StatusUnauthorized
	}
	if code != http.StatusUnauthorized && code != http.StatusForbidden {
		return response, err
	}
	if response != nil {
		_ = response.Body.Close()
	}
	return nil, m.failed
}
