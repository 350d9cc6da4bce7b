package chart

import (
	"context"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// Query asks for the best version of one chart, and about the one that is held.
type Query struct {
	Name, Version, Held string
}

// Answer is what a source has.
type Answer struct {
	Version, Digest string
	Tag             string // git: what a semver range came to
	HeldFits, Newer bool
	HeldDigest      string
	Err             error
}

// FindVersions asks a source about charts, without downloading any. A repository's index is fetched once for all
// of them; a registry has to be asked chart by chart.
func (s *Store) FindVersions(ctx context.Context, source *enginev1.ChartSource, queries []Query, maxAge time.Duration) ([]Answer, error) {
	source = tidy(source)
	source.Url, source.Digest, source.Inline, source.Expected = "", "", nil, ""
	from, err := s.sourceOf(source)
	if err != nil {
		return nil, err
	}
	if teller, ok := from.(Teller); ok {
		limited, cancel := context.WithTimeout(ctx, s.options.Timeout)
		defer cancel()
		return teller.Tell(limited, &Ask{ChartSource: source, Network: s.network}, queries)
	}
	finder, ok := from.(Finder)
	if !ok {
		return nil, invalid("%s cannot tell which versions it has", described(source))
	}
	finder = &asked{Finder: finder, versions: map[string][]string{}, digests: map[string]string{}}
	began := time.Now()
	answers := make([]Answer, len(queries))
	for i, query := range queries {
		own := tidy(source)
		own.Name, own.Version = query.Name, query.Version
		limited, cancel := context.WithTimeout(ctx, s.options.Timeout)
		// The first answer is fresh enough for the others.
		answers[i] = find(limited, finder, &Ask{ChartSource: own, Network: s.network}, query, maxAge+time.Since(began))
		cancel()
		if fault.Is(answers[i].Err, enginev1.Fault_CHART_UNAVAILABLE) && i == 0 && len(queries) > 1 {
			// A source that is down is down for all: no request each.
			for rest := range queries {
				answers[rest].Err = answers[i].Err
			}
			break
		}
	}
	return answers, nil
}

// asked remembers, for one batch, what a source has answered already.
type asked struct {
	Finder
	versions map[string][]string
	digests  map[string]string
}

func (a *asked) Versions(ctx context.Context, ask *Ask, maxAge time.Duration) ([]string, error) {
	if known, ok := a.versions[ask.GetName()]; ok {
		return known, nil
	}
	found, err := a.Finder.Versions(ctx, ask, maxAge)
	if err == nil {
		a.versions[ask.GetName()] = found
	}
	return found, err
}

func (a *asked) Digest(ctx context.Context, ask *Ask, version string) (string, error) {
	key := ask.GetName() + " " + version
	if known, ok := a.digests[key]; ok {
		return known, nil
	}
	found, err := a.Finder.Digest(ctx, ask, version)
	if err == nil {
		a.digests[key] = found
	}
	return found, err
}

func find(ctx context.Context, finder Finder, ask *Ask, query Query, maxAge time.Duration) Answer {
	versions, err := finder.Versions(ctx, ask, maxAge)
	if err != nil {
		return Answer{Err: err}
	}
	at := pick(versions, query.Version)
	if at < 0 {
		return Answer{Err: noVersion(query.Name, query.Version, described(ask.ChartSource), versions)}
	}
	answer := Answer{Version: versions[at]}
	if answer.Digest, err = finder.Digest(ctx, ask, answer.Version); err != nil {
		return Answer{Err: err}
	}
	if query.Held == "" {
		return answer
	}
	answer.HeldFits = allows(query.Version, query.Held)
	answer.Newer = isNewer(answer.Version, query.Held)
	held := pick(versions, query.Held)
	if held < 0 {
		return answer
	}
	if versions[held] == answer.Version {
		answer.HeldDigest = answer.Digest
		return answer
	}
	if answer.HeldDigest, err = finder.Digest(ctx, ask, versions[held]); err != nil {
		answer.HeldDigest = "" // the best version counts; what is held can wait
	}
	return answer
}
