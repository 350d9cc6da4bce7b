package gitsource

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// Reference says which commit is meant: one of its fields, or none for the server's HEAD. A branch may stand beside a
// commit, to say where that commit is to be found.
type Reference struct {
	Branch string
	Tag    string
	Semver string // a range; the highest tag in it is taken
	Commit string // 40 hex digits
}

// Credentials are for one request; all are optional except KnownHosts with SSH.
type Credentials struct {
	Username string // HTTPS, with Password; a token goes into Password
	Password string
	Bearer   string // HTTPS: sent as it is
	// SSH: a PEM key, its passphrase if it has one, and the known_hosts lines of the server.
	PrivateKey []byte
	Passphrase string
	KnownHosts []byte
}

// Request names a chart in a repository.
type Request struct {
	URL         string // https://…, ssh://user@host/…, user@host:path; http://… only with PlainHTTP
	Reference   Reference
	Path        string // the chart's directory; empty: the repository itself
	Credentials Credentials

	CABundle              []byte // PEM
	ClientCertificate     []byte // PEM, with ClientKey
	ClientKey             []byte
	InsecureSkipTLSVerify bool
	PlainHTTP             bool
}

// Pointer is what a reference points to now.
type Pointer struct {
	Commit string // 40 hex digits
	Tag    string // the tag chosen by Semver, or asked for
}

// Result is a chart, packed the same way whenever it is made of the same files.
type Result struct {
	Pointer

	Chart []byte
}

// Limits bound what a server can make us do.
type Limits struct {
	Timeout     time.Duration // of everything; 0: 60 s
	Advertised  int64         // bytes of the list of references; 0: 32 MiB
	Transferred int64         // bytes of one pack; 0: 100 MiB
	Inflated    int64         // bytes of all objects of a pack; 0: 512 MiB
	Object      int64         // bytes of one object; 0: 50 MiB
	Objects     uint32        // 0: 500,000
	AtOnce      int           // fetches under way; 0: 2
}

// Fetcher fetches charts. It is safe for concurrent use.
type Fetcher struct {
	guard  *egress.Guard
	dir    string
	limits Limits
	turns  chan struct{}
}

// New makes a fetcher that keeps what it is working on below dir, and nothing afterwards.
func New(guard *egress.Guard, dir string, limits Limits) *Fetcher {
	limits.Timeout = orElse(limits.Timeout, time.Minute)
	limits.Advertised = orElse(limits.Advertised, 32<<20)
	limits.Transferred = orElse(limits.Transferred, 100<<20)
	limits.Inflated = orElse(limits.Inflated, 512<<20)
	limits.Object = orElse(limits.Object, 50<<20)
	limits.Objects = orElse(limits.Objects, 500_000)
	limits.AtOnce = orElse(limits.AtOnce, 2)
	return &Fetcher{guard: guard, dir: dir, limits: limits, turns: make(chan struct{}, limits.AtOnce)}
}

// Resolve tells what the reference points to now. It costs one request and fetches no object.
func (f *Fetcher) Resolve(ctx context.Context, request Request) (Pointer, error) {
	ctx, cancel := context.WithTimeout(ctx, f.limits.Timeout)
	defer cancel()
	at, err := f.open(ctx, request)
	if err != nil {
		return Pointer{}, err
	}
	defer at.close()
	want, err := choose(at.refs, request.Reference, at.place)
	return want.Pointer, err
}

// Answer is what one of several references points to.
type Answer struct {
	Pointer

	Err error
}

// ResolveAll tells what each of the references points to now, all with one request; the request's own is not read.
func (f *Fetcher) ResolveAll(ctx context.Context, request Request, references []Reference) ([]Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, f.limits.Timeout)
	defer cancel()
	at, err := f.open(ctx, request)
	if err != nil {
		return nil, err
	}
	defer at.close()
	answers := make([]Answer, len(references))
	for i, one := range references {
		found, err := choose(at.refs, one, at.place)
		answers[i] = Answer{found.Pointer, err}
	}
	return answers, nil
}

// Shown is a repository's address fit for messages: without users and passwords.
func Shown(url string) string {
	at, err := parseAddress(url, true)
	if err != nil {
		return "the repository"
	}
	return at.shown()
}

// Fetch gets the chart.
func (f *Fetcher) Fetch(ctx context.Context, request Request) (Result, error) {
	select {
	case f.turns <- struct{}{}:
		defer func() { <-f.turns }()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, f.limits.Timeout)
	defer cancel()
	directory, err := cleanPath(request.Path)
	if err != nil {
		return Result{}, err
	}
	at, err := f.open(ctx, request)
	if err != nil {
		return Result{}, err
	}
	defer at.close()
	want, err := choose(at.refs, request.Reference, at.place)
	if err != nil {
		return Result{}, err
	}
	objects, err := f.download(ctx, at, want, directory)
	if err != nil {
		return Result{}, err
	}
	defer objects.drop()
	packed, err := pack(objects, want.Commit, directory, at.place)
	if err != nil {
		return Result{}, err
	}
	return Result{Pointer: want.Pointer, Chart: packed}, nil
}

// open connects to the repository and reads its references.
func (f *Fetcher) open(ctx context.Context, request Request) (*remote, error) {
	where, err := parseAddress(request.URL, request.PlainHTTP)
	if err != nil {
		return nil, err
	}
	var wire wire
	if where.scheme == "ssh" {
		wire, err = f.dialSSH(ctx, where, request.Credentials)
	} else {
		wire, err = f.newHTTP(where, request)
	}
	if err != nil {
		return nil, err
	}
	at := &remote{wire: wire, place: where.shown(), limits: f.limits}
	if err := at.discover(ctx); err != nil {
		wire.close()
		return nil, err
	}
	return at, nil
}

func (f *Fetcher) temporary() (string, error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return "", fmt.Errorf("no place to fetch a repository into: %w", err)
	}
	made, err := os.MkdirTemp(f.dir, "git-")
	if err != nil {
		return "", fmt.Errorf("no place to fetch a repository into: %w", err)
	}
	return made, nil
}

func invalid(format string, args ...any) error {
	return fault.New(enginev1.Fault_CHART_INVALID, format, args...)
}

func notFound(format string, args ...any) error {
	return fault.New(enginev1.Fault_CHART_NOT_FOUND, format, args...)
}

// unavailable explains why a server cannot be used now; what the guard or this package has to say, it says itself.
func unavailable(place string, err error) error {
	var known *fault.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.Canceled):
		return fault.Wrap(enginev1.Fault_CANCELLED, err, "fetching %s was cancelled", place)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return fault.Wrap(enginev1.Fault_CHART_UNAVAILABLE, err, "%s did not answer in time", place)
	}
	return fault.Wrap(enginev1.Fault_CHART_UNAVAILABLE, err, "%s cannot be fetched: %v", place, err)
}

func orElse[T comparable](value, usual T) T {
	var zero T
	if value == zero {
		return usual
	}
	return value
}
