package keychain

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	askTimeout = 30 * time.Second
	// margin is how long before its end a credential is no longer given: a pull takes time, and clocks differ.
	margin = 5 * time.Minute
	// failureRest is how long a failure is the answer.
	failureRest = 30 * time.Second
	// mostHosts bounds what is remembered: users choose the hosts.
	mostHosts = 1000
)

// Credential is what a registry is shown.
type Credential struct {
	Username string
	Password string
}

// source asks a cloud for a credential of one registry, and says until when it is good.
type source func(ctx context.Context, client *http.Client, at registry) (Credential, time.Time, error)

// registry is a host that belongs to a cloud.
type registry struct {
	host  string
	cloud string // as messages call it
	ask   source
	parts []string // what the pattern found in the host
}

// Keychain keeps credentials until shortly before their end. It is safe for concurrent use.
type Keychain struct {
	client *http.Client
	now    func() time.Time
	flight singleflight.Group

	mutex sync.Mutex
	known map[string]entry
}

type entry struct {
	credential Credential
	err        error
	until      time.Time
}

// New makes an empty keychain. The client asks the clouds; nil is the libraries' own.
func New(client *http.Client) *Keychain {
	return &Keychain{client: client, now: time.Now, known: map[string]entry{}}
}

// Credential gives the machine's own credential for a registry. There is none, and no error, for hosts of nobody's
// cloud and where the registry's certificate will not be verified. After an error the caller may still try without a
// credential, since registries have public charts too, and tell the error if that is refused.
func (k *Keychain) Credential(ctx context.Context, host string, verified bool) (Credential, bool, error) {
	at, ok := find(host)
	if !ok || !verified {
		return Credential{}, false, nil
	}
	k.mutex.Lock()
	found, ok := k.known[at.host]
	k.mutex.Unlock()
	if ok && k.now().Before(found.until) {
		return found.credential, found.err == nil, found.err
	}
	select {
	case result := <-k.flight.DoChan(at.host, func() (any, error) { return k.renew(at), nil }):
		made := result.Val.(entry)
		return made.credential, made.err == nil, made.err
	case <-ctx.Done():
		return Credential{}, false, ctx.Err()
	}
}

// renew has its own time: the caller that started it may leave, others wait for the answer.
func (k *Keychain) renew(at registry) entry {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	credential, until, err := at.ask(ctx, k.client, at)
	made := entry{credential: credential, until: until.Add(-margin)}
	if err != nil {
		made = entry{err: explain(at, err), until: k.now().Add(failureRest)}
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for host, old := range k.known {
		if len(k.known) >= mostHosts || k.now().After(old.until) {
			delete(k.known, host)
		}
	}
	k.known[at.host] = made
	return made
}

// find tells whose registry a host is; a port other than that of HTTPS is nobody's.
func find(host string) (registry, bool) {
	host = strings.ToLower(host)
	if name, port, err := net.SplitHostPort(host); err == nil {
		if port != "443" {
			return registry{}, false
		}
		host = name
	}
	for _, cloud := range clouds {
		if parts := cloud.hosts.FindStringSubmatch(host); parts != nil {
			return registry{host: host, cloud: cloud.name, ask: cloud.ask, parts: parts}, true
		}
	}
	return registry{}, false
}
