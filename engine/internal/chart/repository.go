package chart

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

const (
	maxIndex = 64 << 20
	// An index this young answers for an exact version it holds; a missing version is always asked for again.
	indexFresh = time.Minute
	// A range or "latest" is answered from an index this young: releases created together ask once.
	indexFreshForRange = 5 * time.Second
)

// index is a repository's index.yaml, reduced to what finding a chart needs.
type index struct {
	APIVersion string                    `json:"apiVersion"`
	Entries    map[string][]indexVersion `json:"entries"`

	etag    string
	digest  string
	fetched time.Time
	size    int64
}

type indexVersion struct {
	Version string   `json:"version"`
	URLs    []string `json:"urls"`
	Digest  string   `json:"digest"`
}

// fromRepository finds the wanted version in the repository's index and downloads its archive.
func (s *Store) fromRepository(ctx context.Context, source *enginev1.ChartSource) ([]byte, error) {
	home, err := url.Parse(source.GetRepository())
	if err != nil || home.Host == "" {
		return nil, invalid("%q is not the URL of a chart repository", shown(source.GetRepository()))
	}
	if source.GetName() == "" {
		return nil, invalid("a chart from %s needs a name", shown(source.GetRepository()))
	}
	version, err := s.find(ctx, source, home)
	if err != nil {
		return nil, err
	}
	if len(version.URLs) == 0 {
		return nil, invalid("chart %q %s has no URL in %s", source.GetName(), version.Version, shown(source.GetRepository()))
	}
	target, err := resolveReference(home, version.URLs[0])
	if err != nil {
		return nil, invalid("chart %q %s has a bad URL in %s", source.GetName(), version.Version, shown(source.GetRepository()))
	}
	if target.Scheme == "oci" {
		return s.fromRegistry(ctx, &enginev1.ChartSource{
			Url: target.String(), PlainHttp: source.GetPlainHttp(),
			InsecureSkipTlsVerify: source.GetInsecureSkipTlsVerify(), CaBundle: source.GetCaBundle(),
		})
	}
	packed, _, err := s.get(ctx, source, target, "", maxPacked)
	if err != nil {
		return nil, err
	}
	if version.Digest != "" {
		if want, err := normal(version.Digest); err == nil && want != digestOf(packed) {
			return nil, invalid("chart %q %s is %s, but the index of %s says %s",
				source.GetName(), version.Version, digestOf(packed), shown(source.GetRepository()), want)
		}
	}
	return packed, nil
}

// find looks in the index known already, and asks the repository when that is too old or lacks the version.
func (s *Store) find(ctx context.Context, source *enginev1.ChartSource, home *url.URL) (*indexVersion, error) {
	key := "index " + sourceKey(&enginev1.ChartSource{
		Repository: source.GetRepository(), Username: source.GetUsername(), Password: source.GetPassword(),
		InsecureSkipTlsVerify: source.GetInsecureSkipTlsVerify(), CaBundle: source.GetCaBundle(),
	})
	fresh := indexFreshForRange
	if _, ok := exact(source.GetVersion()); ok {
		fresh = indexFresh
	}
	known, ok := s.indexes.get(key)
	if ok && time.Since(known.fetched) < fresh {
		if found := known.version(source.GetName(), source.GetVersion()); found != nil {
			return found, nil
		}
	}
	// The flight outlives whoever started it: another caller's cancellation must not fail this one.
	got, err, _ := s.flights.Do(key, func() (any, error) {
		return s.fetchIndex(context.WithoutCancel(ctx), source, home, key, known)
	})
	if err != nil {
		return nil, err
	}
	current := got.(*index)
	if found := current.version(source.GetName(), source.GetVersion()); found != nil {
		return found, nil
	}
	return nil, current.missing(source)
}

func (s *Store) fetchIndex(ctx context.Context, source *enginev1.ChartSource, home *url.URL, key string, known *index) (*index, error) {
	target := home.JoinPath("index.yaml")
	etag := ""
	if known != nil {
		etag = known.etag
	}
	body, tag, err := s.get(ctx, source, target, etag, maxIndex)
	if err != nil {
		return nil, err
	}
	if body == nil || (known != nil && known.digest == digestOf(body)) {
		same := *known
		same.fetched = time.Now()
		s.indexes.put(key, &same, same.size)
		return &same, nil
	}
	parsed, err := parseIndex(body)
	if err != nil {
		return nil, invalid("the index of %s cannot be read: %s", shown(source.GetRepository()), oneLine(err.Error()))
	}
	parsed.etag, parsed.digest, parsed.fetched, parsed.size = tag, digestOf(body), time.Now(), int64(len(body))
	s.indexes.put(key, parsed, parsed.size)
	return parsed, nil
}

func parseIndex(body []byte) (*index, error) {
	parsed := &index{}
	if json.Valid(body) {
		if err := json.Unmarshal(body, parsed); err != nil {
			return nil, err
		}
	} else if err := yaml.Unmarshal(body, parsed); err != nil {
		return nil, err
	}
	if parsed.APIVersion == "" {
		return nil, fmt.Errorf("it has no apiVersion")
	}
	return parsed, nil
}

func (i *index) version(name, wanted string) *indexVersion {
	entries := i.Entries[name]
	if at := pick(texts(entries), wanted); at >= 0 {
		return &entries[at]
	}
	return nil
}

func (i *index) missing(source *enginev1.ChartSource) error {
	where := shown(source.GetRepository())
	entries := i.Entries[source.GetName()]
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

// resolveReference turns an index's chart URL, absolute or relative to the repository, into a full one. The
// repository's query is kept for relative ones: that is how signed repositories pass their token.
func resolveReference(home *url.URL, ref string) (*url.URL, error) {
	parsed, err := url.Parse(ref)
	if err != nil {
		return nil, err
	}
	if parsed.IsAbs() {
		return parsed, nil
	}
	base := *home
	base.User = nil
	base.Path = strings.TrimSuffix(base.Path, "/") + "/"
	base.RawPath = ""
	resolved := base.ResolveReference(parsed)
	if resolved.RawQuery == "" && resolved.Host == home.Host {
		resolved.RawQuery = home.RawQuery
	}
	return resolved, nil
}
