package chart

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/gitsource"
	"github.com/pilothouse-dev/pilothouse/engine/internal/verify"
)

// Source is one kind of place that charts come from. A store asks the source registered for a request's kind; a
// new kind of place is a new Source and nothing else.
type Source interface {
	// Locate finds the chart a request describes, without fetching it: a range becomes one version, a tag one
	// manifest.
	Locate(ctx context.Context, ask *Ask) (*Located, error)
}

// Finder is a Source that can tell which versions there are.
type Finder interface {
	// Versions names all versions of the chart the request names; what is known may be as old as maxAge.
	Versions(ctx context.Context, ask *Ask, maxAge time.Duration) ([]string, error)
	// Digest tells the digest of one version's packed chart, or "" where the source does not say.
	Digest(ctx context.Context, ask *Ask, version string) (string, error)
}

// Teller is a Source that answers all queries at once, and in its own way.
type Teller interface {
	Tell(ctx context.Context, ask *Ask, queries []Query) ([]Answer, error)
}

// Ask is a request to a source. Credentials are in it, and nowhere else: a source keeps none.
type Ask struct {
	*enginev1.ChartSource
	// Network makes the connections. Whoever connects in another way goes around the egress guard.
	Network *Network
	// Known is what came along with the chart this very request led to last, if the store still has that chart.
	Known Validators
	// strange: the request's credentials are for another place than this.
	strange bool
}

// Located is a chart that has been found.
type Located struct {
	// Key names the bytes at this source: the same key means the same bytes, so that they are fetched once.
	// Empty: only fetching tells.
	Key string
	// Manifest is the digest of the OCI manifest: what signatures are about. Empty for other sources.
	Manifest string
	// Signatures is where signatures of the manifest are looked for; nil without one.
	Signatures verify.Repository
	// Fetch gets the packed chart.
	Fetch func(ctx context.Context) (*Package, error)
	// Provenance gets the chart's .prov file; nil where there can be none.
	Provenance func(ctx context.Context) ([]byte, error)
}

// Package is a packed chart as its source gave it.
type Package struct {
	Packed     []byte // nil: not changed since Ask.Known
	Validators Validators
}

// Validators are what HTTP knows a version of something by.
type Validators struct {
	ETag     string
	Modified string
}

// Verify is asked about every chart that was fetched, before it can be used: an error keeps it out of the store.
// located.Manifest and located.Provenance are what there is to check the packed bytes with; a chart that is kept
// although its source has another now has neither.
type Verify func(ctx context.Context, ask *Ask, located *Located, packed []byte) error

const inlineKind = "inline"

// kindOf says which source a request is for: the scheme of its address, or what it brings along.
func kindOf(source *enginev1.ChartSource) (string, error) {
	if len(source.GetInline()) > 0 {
		return inlineKind, nil
	}
	if source.GetGit() != nil {
		return gitKind, nil
	}
	where := location(source)
	if where == "" {
		return "", invalid("the chart has no source: give repository and name, url, git, or inline")
	}
	parsed, err := url.Parse(where)
	if err != nil {
		return "", invalid("the chart's address cannot be read")
	}
	if parsed.Scheme == "" || parsed.Scheme == "file" {
		return "", invalid("%q is a path: a chart on the controller's own disk is not a source; "+
			"use a repository, a registry or inline", shown(where))
	}
	return strings.ToLower(parsed.Scheme), nil
}

// Register adds a source, or replaces one. Not to be called once the store is in use.
func (s *Store) Register(kind string, source Source) {
	s.sources[kind] = source
}

func (s *Store) sourceOf(source *enginev1.ChartSource) (Source, error) {
	kind, err := kindOf(source)
	if err != nil {
		return nil, err
	}
	found, ok := s.sources[kind]
	if !ok {
		return nil, invalid("%s is not the URL of a chart: there is no source for %s://", shown(location(source)), kind)
	}
	return found, nil
}

// inlineSource is a chart that travels with the request.
type inlineSource struct{}

func (inlineSource) Locate(_ context.Context, ask *Ask) (*Located, error) {
	packed := ask.GetInline()
	return &Located{
		Key:   digestOf(packed),
		Fetch: func(context.Context) (*Package, error) { return &Package{Packed: packed}, nil },
	}, nil
}

func location(source *enginev1.ChartSource) string {
	if source.GetUrl() != "" {
		return source.GetUrl()
	}
	return source.GetRepository()
}

// described is a source fit for messages.
func described(source *enginev1.ChartSource) string {
	if len(source.GetInline()) > 0 {
		return "the inline chart"
	}
	if git := source.GetGit(); git != nil {
		return gitsource.Shown(git.GetUrl())
	}
	return shown(location(source))
}
