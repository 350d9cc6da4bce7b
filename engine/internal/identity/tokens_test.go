package identity

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// clock is a time that passes when told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// counted is a source of the tokens t1, t2, ...; asked receives one value per question.
func counted(life time.Duration) (*Tokens, *clock, *error, chan int) {
	at := &clock{now: time.Unix(1_000_000, 0)}
	var fails error
	asked, count := make(chan int, 100), 0
	tokens := newTokens(func(context.Context) (Token, error) {
		count++
		defer func() { asked <- count }()
		if fails != nil {
			return Token{}, fails
		}
		return Token{Value: fmt.Sprintf("t%d", count), Expiry: at.read().Add(life)}, nil
	}, Request{})
	tokens.now = at.read
	return tokens, at, &fails, asked
}

func want(t *testing.T, tokens *Tokens, value string) {
	t.Helper()
	if got, err := tokens.get(context.Background()); err != nil || got != value {
		t.Fatalf("got %q, %v, want %q", got, err, value)
	}
}

// settled waits until the renewal in the background has stored what it got.
func settled(tokens *Tokens, asked chan int) {
	<-asked
	_, _, _ = tokens.group.Do("", func() (any, error) { return nil, nil })
}

func TestTokenServesUntilItsSuccessorIsThere(t *testing.T) {
	tokens, at, _, asked := counted(time.Hour)
	want(t, tokens, "t1")
	<-asked
	at.pass(54 * time.Minute)
	want(t, tokens, "t1")
	if len(asked) != 0 {
		t.Fatal("asked too early")
	}
	at.pass(2 * time.Minute) // four minutes before the end
	want(t, tokens, "t1")
	settled(tokens, asked)
	want(t, tokens, "t2")
}

func TestExpiredTokenIsNotUsed(t *testing.T) {
	tokens, at, _, _ := counted(time.Hour)
	want(t, tokens, "t1")
	at.pass(time.Hour - skew)
	want(t, tokens, "t2")
}

func TestShortLivesAreRefreshedInTheirLastFifth(t *testing.T) {
	tokens, at, _, asked := counted(15 * time.Minute)
	want(t, tokens, "t1")
	<-asked
	at.pass(12*time.Minute - time.Second)
	want(t, tokens, "t1")
	at.pass(time.Second)
	want(t, tokens, "t1")
	settled(tokens, asked)
	want(t, tokens, "t2")
}

func TestFailedRefreshKeepsTheOldToken(t *testing.T) {
	tokens, at, fails, asked := counted(time.Hour)
	want(t, tokens, "t1")
	<-asked
	*fails = errors.New("down")
	at.pass(56 * time.Minute)
	want(t, tokens, "t1")
	settled(tokens, asked)
	want(t, tokens, "t1")
	if len(asked) != 0 {
		t.Fatal("asked again at once")
	}
	at.pass(failureRest)
	*fails = nil
	want(t, tokens, "t1")
	settled(tokens, asked)
	want(t, tokens, "t3")
}

func TestFailureIsTheAnswerForAWhile(t *testing.T) {
	tokens, at, fails, asked := counted(time.Hour)
	*fails = errors.New("down")
	for range 10 {
		if _, err := tokens.get(context.Background()); err == nil {
			t.Fatal("no failure")
		}
	}
	if len(asked) != 1 {
		t.Fatalf("asked %d times", len(asked))
	}
	*fails = nil
	at.pass(failureRest)
	want(t, tokens, "t2")
}

func TestRefusalsMakeNoStorm(t *testing.T) {
	tokens, at, _, _ := counted(time.Hour)
	want(t, tokens, "t1")
	if !tokens.forget("t1") {
		t.Fatal("the first refusal renews")
	}
	want(t, tokens, "t2")
	if !tokens.forget("t1") {
		t.Fatal("who was refused with the old token may use the new one")
	}
	if tokens.forget("t2") {
		t.Fatal("the new one was refused too: asking again helps nobody")
	}
	want(t, tokens, "t2")
	at.pass(refusalRest)
	if !tokens.forget("t2") {
		t.Fatal("later it may have been revoked")
	}
}

func TestOneQuestionForAll(t *testing.T) {
	release, asked := make(chan struct{}), make(chan int, 100)
	tokens := newTokens(func(context.Context) (Token, error) {
		asked <- 1
		<-release
		return Token{Value: "t"}, nil
	}, Request{})

	// The caller that asked first leaves; the others still get their answer.
	leaving, leave := context.WithCancel(context.Background())
	left := make(chan error)
	go func() { _, err := tokens.get(leaving); left <- err }()
	<-asked
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { want(t, tokens, "t") })
	}
	close(release)
	all.Wait()
	if len(asked) != 0 {
		t.Fatalf("asked %d times more", len(asked))
	}
}
