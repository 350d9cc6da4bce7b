package chart

import (
	"context"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

const (
	maxIndex      = 64 << 20
	maxProvenance = 1 << 20
	// An index this young answers for an exact version it holds; a missing version is always asked for again.
	indexFresh = time.Minute
	// A range or "latest" is answered from an index this young: releases created together ask once.
	indexFreshForRange = 5 * time.Second
)

// getter fetches one address for a request.
type getter func(ctx context.Context, ask *Ask, target *url.URL, known Validators, limit int64) (got, error)

// web is the source for http:// and https://, and for what an operator adds to them: repositories with an index, and
// plain archives.
type web struct {
	get     getter // what the request's own scheme is fetched with
	indexes *recent[*index]
	flights singleflight.Group
}

func newWeb(get getter) *web {
	return &web{get: get, indexes: newRecent[*index](128 << 20)}
}

// Locate finds a chart in a repository, or takes the URL as it is.
func (w *web) Locate(ctx context.Context, ask *Ask) (*Located, error) {
	if ask.GetUrl() != "" {
		target, err := url.Parse(ask.GetUrl())
		if err != nil || target.Host == "" {
			return nil, invalid("%q is not the URL of a chart", shown(ask.GetUrl()))
		}
		return archiveAt(w.get, ask, target, ask.Known), nil
	}
	home, err := homeOf(ask)
	if err != nil {
		return nil, err
	}
	version, err := w.find(ctx, ask, home)
	if err != nil {
		return nil, err
	}
	if len(version.URLs) == 0 {
		return nil, invalid("chart %q %s has no URL in %s", ask.GetName(), version.Version, shown(ask.GetRepository()))
	}
	target, err := resolveReference(home, version.URLs[0])
	if err != nil {
		return nil, invalid("chart %q %s has a bad URL in %s", ask.GetName(), version.Version, shown(ask.GetRepository()))
	}
	if target.Scheme == "oci" {
		return registries{}.Locate(ctx, elsewhere(ask, target))
	}
	get := getter(overHTTP)
	if target.Scheme == home.Scheme {
		get = w.get
	} else if target.Scheme != "http" && target.Scheme != "https" {
		return nil, invalid("chart %q %s is at %s:// in %s: only http, https and oci are followed",
			ask.GetName(), version.Version, target.Scheme, shown(ask.GetRepository()))
	}
	located := archiveAt(get, ask, target, Validators{})
	located.Key = target.String() + " " + version.Digest
	located.Fetch = checked(located.Fetch, ask, version)
	return located, nil
}

// Versions names the versions the index has.
func (w *web) Versions(ctx context.Context, ask *Ask, maxAge time.Duration) ([]string, error) {
	home, err := homeOf(ask)
	if err != nil {
		return nil, err
	}
	found, err := w.index(ctx, ask, home, maxAge)
	if err != nil {
		return nil, err
	}
	entries, err := entriesOf(found, ask)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, missing(ask.ChartSource, nil)
	}
	return texts(entries), nil
}

// Digest tells what the index says of one version.
func (w *web) Digest(ctx context.Context, ask *Ask, version string) (string, error) {
	home, err := homeOf(ask)
	if err != nil {
		return "", err
	}
	found, err := w.index(ctx, ask, home, indexFresh)
	if err != nil {
		return "", err
	}
	entries, err := entriesOf(found, ask)
	if err != nil {
		return "", err
	}
	at := pick(texts(entries), version)
	if at < 0 {
		return "", nil
	}
	digest, err := normal(entries[at].Digest)
	if err != nil {
		return "", nil //nolint:nilerr // an index need not say
	}
	return digest, nil
}

func homeOf(ask *Ask) (*url.URL, error) {
	home, err := url.Parse(ask.GetRepository())
	if err != nil || home.Host == "" {
		return nil, invalid("%q is not the URL of a chart repository", shown(ask.GetRepository()))
	}
	if ask.GetName() == "" {
		return nil, invalid("a chart from %s needs a name", shown(ask.GetRepository()))
	}
	return home, nil
}

func archiveAt(get getter, ask *Ask, target *url.URL, known Validators) *Located {
	return &Located{
		Fetch: func(ctx context.Context) (*Package, error) {
			answer, err := get(ctx, ask, target, known, maxPacked)
			if err != nil {
				return nil, err
			}
			return &Package{Packed: answer.body, Validators: answer.validators}, nil
		},
		Provenance: func(ctx context.Context) ([]byte, error) {
			beside := *target
			beside.Path += ".prov"
			beside.RawPath = ""
			answer, err := get(ctx, ask, &beside, Validators{}, maxProvenance)
			return answer.body, err
		},
	}
}

// elsewhere is the same request for the registry an index points to. What the repository was told stays with the
// repository; a docker config names its hosts itself.
func elsewhere(ask *Ask, target *url.URL) *Ask {
	return &Ask{Network: ask.Network, strange: ask.hasLogin(), ChartSource: &enginev1.ChartSource{
		Url: target.String(), PlainHttp: ask.GetPlainHttp(), InsecureSkipTlsVerify: ask.GetInsecureSkipTlsVerify(),
		CaBundle: ask.GetCaBundle(), DockerConfig: ask.GetDockerConfig(),
	}}
}

// checked refuses an archive that is not the one the index describes.
func checked(fetch func(context.Context) (*Package, error), ask *Ask, version *indexVersion) func(context.Context) (*Package, error) {
	want, err := normal(version.Digest)
	if err != nil {
		return fetch // an index need not say
	}
	return func(ctx context.Context) (*Package, error) {
		found, err := fetch(ctx)
		if err != nil {
			return nil, err
		}
		if is := digestOf(found.Packed); is != want {
			return nil, invalid("chart %q %s is %s, but the index of %s says %s",
				ask.GetName(), version.Version, is, shown(ask.GetRepository()), want)
		}
		return found, nil
	}
}

// find looks in the index known already, and asks the repository when that is too old or lacks the version.
func (w *web) find(ctx context.Context, ask *Ask, home *url.URL) (*indexVersion, error) {
	fresh := indexFreshForRange
	if _, ok := exact(ask.GetVersion()); ok {
		fresh = indexFresh
	}
	began := time.Now()
	for {
		found, err := w.index(ctx, ask, home, fresh)
		if err != nil {
			return nil, err
		}
		entries, err := entriesOf(found, ask)
		if err != nil {
			return nil, err
		}
		if at := pick(texts(entries), ask.GetVersion()); at >= 0 {
			return &entries[at], nil
		}
		if found.when().After(began) {
			return nil, missing(ask.ChartSource, entries)
		}
		fresh = time.Since(began) // what another caller has fetched meanwhile will do
	}
}

// index returns the repository's index, at most maxAge old.
func (w *web) index(ctx context.Context, ask *Ask, home *url.URL, maxAge time.Duration) (*index, error) {
	// Everything but what is looked for: charts of one repository share its index, credentials do not.
	key := sourceKey(&enginev1.ChartSource{
		Repository: ask.GetRepository(), Username: ask.GetUsername(), Password: ask.GetPassword(),
		BearerToken: ask.GetBearerToken(), DockerConfig: ask.GetDockerConfig(), PlainHttp: ask.GetPlainHttp(),
		ClientCertificate: ask.GetClientCertificate(), ClientKey: ask.GetClientKey(),
		InsecureSkipTlsVerify: ask.GetInsecureSkipTlsVerify(), CaBundle: ask.GetCaBundle(),
	})
	known, ok := w.indexes.get(key)
	if ok && time.Since(known.when()) < maxAge {
		return known, nil
	}
	// The flight outlives whoever started it: another caller's cancellation must not fail this one.
	flown, err, _ := w.flights.Do(key, func() (any, error) {
		return w.fetchIndex(context.WithoutCancel(ctx), ask, home, key)
	})
	if err != nil {
		return nil, err
	}
	return flown.(*index), nil
}

func (w *web) fetchIndex(ctx context.Context, ask *Ask, home *url.URL, key string) (*index, error) {
	known, have := w.indexes.get(key)
	validators := Validators{}
	if have {
		validators = known.validators
	}
	answer, err := w.get(ctx, ask, home.JoinPath("index.yaml"), validators, maxIndex)
	if err != nil {
		return nil, err
	}
	if have && (answer.body == nil || known.digest == digestOf(answer.body)) {
		known.current()
		return known, nil
	}
	parsed, err := parseIndex(answer.body)
	if err != nil {
		return nil, invalid("the index of %s cannot be read: %s", shown(ask.GetRepository()), oneLine(err.Error()))
	}
	parsed.validators = answer.validators
	w.indexes.put(key, parsed, parsed.size)
	return parsed, nil
}

func entriesOf(found *index, ask *Ask) ([]indexVersion, error) {
	entries, err := found.versions(ask.GetName())
	if err != nil {
		return nil, invalid("chart %q in the index of %s cannot be read: %s",
			ask.GetName(), shown(ask.GetRepository()), oneLine(err.Error()))
	}
	return entries, nil
}

func missing(source *enginev1.ChartSource, entries []indexVersion) error {
	where := shown(source.GetRepository())
	if len(entries) == 0 {
		return notFound("there is no chart %q in %s", source.GetName(), where)
	}
	return noVersion(source.GetName(), source.GetVersion(), where, texts(entries))
}

// noVersion tells what is there instead of the version asked for.
func noVersion(name, wanted, where string, versions []string) error {
	hint := ""
	if at := pick(versions, ""); at >= 0 {
		hint = ": newest is " + versions[at]
	}
	if strings.TrimSpace(wanted) == "" {
		return notFound("chart %q has no usable version in %s", name, where)
	}
	return notFound("chart %q has no version %s in %s%s", name, strings.TrimSpace(wanted), where, hint)
}

func texts(entries []indexVersion) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Version
	}
	return out
}
