package identity

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// askTimeout bounds one question to a token service: every request to the cluster waits for it.
	askTimeout = 30 * time.Second
	// earliest is how long before its end a token is replaced, in the background, at most.
	earliest = 5 * time.Minute
	// skew is the part of a token's life not relied on: clocks differ and requests take time.
	skew = 10 * time.Second
	// failureRest is how long a failure is the answer: a wrong secret must not become a storm (or a lockout).
	failureRest = 5 * time.Second
	// refusalRest is how long a renewal forced by a 401 stands: a cluster that does not know the identity says
	// 401 to every token.
	refusalRest = 30 * time.Second
)

// Token is what a cluster is shown.
type Token struct {
	Value  string
	Expiry time.Time // zero: until it is refused
}

// Source asks for a new token. It does not answer from a cache: a refused token must be replaceable. It is never
// called twice at once.
type Source func(ctx context.Context) (Token, error)

// Tokens keeps one connection's token fresh.
type Tokens struct {
	source  Source
	explain func(error) error // makes a fault of a source's error
	now     func() time.Time
	group   singleflight.Group

	mu        sync.Mutex
	token     Token
	refreshAt time.Time // when to look for a new one while the old one still serves
	failure   error
	restUntil time.Time // when to ask again after a failure
	forcedAt  time.Time // when a 401 last made us forget a token
}

func newTokens(source Source, request Request) *Tokens {
	return &Tokens{source: source, explain: request.explain, now: time.Now}
}

// get gives a token that is still good. One that is about to end serves while its successor is asked for.
func (t *Tokens) get(ctx context.Context) (string, error) {
	t.mu.Lock()
	now := t.now()
	token, good := t.token, t.token.good(now)
	due := !t.refreshAt.IsZero() && !now.Before(t.refreshAt)
	var failure error
	if now.Before(t.restUntil) {
		failure = t.failure
	}
	t.mu.Unlock()

	switch {
	case good && (!due || failure != nil):
		return token.Value, nil
	case good:
		t.group.DoChan("", t.renew)
		return token.Value, nil
	case failure != nil:
		return "", failure
	}
	select {
	case result := <-t.group.DoChan("", t.renew):
		if result.Err != nil {
			return "", result.Err
		}
		return result.Val.(string), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// renew asks the source. It has its own time: the caller that started it may leave, others wait for the answer.
func (t *Tokens) renew() (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	asked := t.now()
	token, err := t.source(ctx)

	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.failure, t.restUntil = t.explain(err), t.now().Add(failureRest)
		return nil, t.failure
	}
	t.token, t.failure, t.restUntil, t.refreshAt = token, nil, time.Time{}, time.Time{}
	if !token.Expiry.IsZero() {
		t.refreshAt = token.Expiry.Add(-min(token.Expiry.Sub(asked)/5, earliest))
	}
	return token.Value, nil
}

// forget drops a token the cluster refused, so that the next get asks for another. It is false if asking again so
// soon would only be a storm.
func (t *Tokens) forget(value string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token.Value != value {
		return true // somebody else has already replaced it
	}
	now := t.now()
	if !t.forcedAt.IsZero() && now.Sub(t.forcedAt) < refusalRest {
		return false
	}
	t.forcedAt, t.token = now, Token{}
	return true
}

func (t Token) good(now time.Time) bool {
	return t.Value != "" && (t.Expiry.IsZero() || now.Before(t.Expiry.Add(-skew)))
}
