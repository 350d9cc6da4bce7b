package chart

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// urlFresh is how long a plain URL without a pin is taken to hold the same chart: a URL, unlike a version, may
// be published again.
const urlFresh = time.Minute

// resolution is what a source led to.
type resolution struct {
	digest     string
	validators Validators
	at         time.Time
}

// Resolve finds the chart a source describes, downloads it unless it is known already, and says what it is.
//
// A source with an exact version or a pin that was resolved once makes no request again. The key includes the
// credentials: whoever cannot read a source does not get its charts from the cache.
func (s *Store) Resolve(ctx context.Context, source *enginev1.ChartSource) (Info, error) {
	source = tidy(source)
	if source.GetDigest() != "" {
		pin, err := normal(source.GetDigest())
		if err != nil {
			return Info{}, err
		}
		source.Digest = pin
	}
	expected := source.GetExpected()
	source.Expected = ""
	key := sourceKey(source)
	info, ok := s.remembered(key, source)
	if !ok {
		var err error
		if info, err = s.resolveOnce(ctx, source, key); err != nil {
			return Info{}, err
		}
	}
	if expected == "" || expected == info.Digest {
		return info, nil
	}
	return s.keep(ctx, info, expected, source)
}

// resolveOnce lets callers that ask for the same thing share one answer.
func (s *Store) resolveOnce(ctx context.Context, source *enginev1.ChartSource, key string) (Info, error) {
	// Waiting is the caller's, the download is not: it goes on for the others when one caller leaves.
	result := s.flights.DoChan("resolve "+key, func() (any, error) {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.Timeout)
		defer cancel()
		return s.resolve(limited, source, key)
	})
	select {
	case <-ctx.Done():
		return Info{}, &fault.Error{Kind: enginev1.Fault_CANCELLED, Message: "resolving the chart was cancelled"}
	case got := <-result:
		if got.Err != nil {
			return Info{}, got.Err
		}
		return got.Val.(Info), nil
	}
}

// remembered answers without a request, when that is certain enough and the chart is still there.
func (s *Store) remembered(key string, source *enginev1.ChartSource) (Info, bool) {
	known, ok := s.known.get(key)
	if !ok || (!settled(source) && !(source.GetUrl() != "" && time.Since(known.at) < urlFresh)) {
		return Info{}, false
	}
	e, err := s.entry(known.digest)
	if err != nil {
		return Info{}, false
	}
	return e.info, true
}

// settled says whether the source can only ever mean one chart.
func settled(source *enginev1.ChartSource) bool {
	if git := source.GetGit(); git != nil {
		return git.GetCommit() != ""
	}
	if len(source.GetInline()) > 0 || source.GetDigest() != "" || strings.Contains(source.GetUrl(), "@sha256:") {
		return true
	}
	_, ok := exact(source.GetVersion())
	return ok && source.GetUrl() == ""
}

func (s *Store) resolve(ctx context.Context, source *enginev1.ChartSource, key string) (Info, error) {
	from, err := s.sourceOf(source)
	if err != nil {
		return Info{}, err
	}
	ask := &Ask{ChartSource: source, Network: s.network}
	if known, ok := s.known.get(key); ok {
		if _, err := s.entry(known.digest); err == nil {
			ask.Known = known.validators
		}
	}
	located, err := from.Locate(ctx, ask)
	if err != nil {
		return Info{}, err
	}
	found, err := s.take(ctx, ask, located, key)
	if err != nil {
		return Info{}, err
	}
	s.known.put(key, found, 1)
	return s.Describe(found.digest)
}

// take gets what was located into the store. However a chart was asked for (1.2.0, v1.2.0, ~1.2), what leads to the
// same place with the same credentials is fetched once.
func (s *Store) take(ctx context.Context, ask *Ask, located *Located, key string) (resolution, error) {
	if located.Key == "" {
		return s.fetch(ctx, ask, located, key)
	}
	place := "at " + sourceKey(placeOf(ask.ChartSource)) + " " + located.Key
	if known, ok := s.known.get(place); ok {
		if _, err := s.entry(known.digest); err == nil {
			return known, nil
		}
	}
	found, err, _ := s.flights.Do(place, func() (any, error) {
		taken, err := s.fetch(ctx, ask, located, key)
		if err == nil {
			s.known.put(place, taken, 1)
		}
		return taken, err
	})
	return found.(resolution), err
}

// fetch downloads, checks, and only then keeps.
func (s *Store) fetch(ctx context.Context, ask *Ask, located *Located, key string) (resolution, error) {
	found, err := located.Fetch(ctx)
	if err != nil {
		return resolution{}, err
	}
	if found.Packed == nil { // not changed since
		known, _ := s.known.get(key)
		return resolution{known.digest, found.Validators, time.Now()}, nil
	}
	digest := digestOf(found.Packed)
	if pin := ask.GetDigest(); pin != "" && pin != digest && pin != located.Manifest {
		said := digest
		if located.Manifest != "" {
			said += " (manifest " + located.Manifest + ")"
		}
		return resolution{}, invalid("the chart from %s is %s, but the pin says %s", described(ask.ChartSource), said, pin)
	}
	if s.options.Verify != nil {
		if err := s.options.Verify(ctx, ask, located, found.Packed); err != nil {
			return resolution{}, err
		}
	}
	if _, err := s.Put(found.Packed); err != nil {
		return resolution{}, named(err, ask.ChartSource)
	}
	return resolution{digest, found.Validators, time.Now()}, nil
}

// keep returns the chart that a version was when it was deployed last: a version that is published again must not
// reach a cluster by the way.
func (s *Store) keep(ctx context.Context, info Info, expected string, source *enginev1.ChartSource) (Info, error) {
	held, err := s.entry(expected)
	if err == nil && s.options.Verify != nil {
		var packed []byte
		if packed, err = os.ReadFile(s.path(held.info.Digest)); err == nil {
			err = s.options.Verify(ctx, &Ask{ChartSource: source, Network: s.network}, &Located{}, packed)
		}
	}
	if err != nil || held.info.Name != info.Name || held.info.Version != info.Version {
		return Info{}, invalid("chart %q %s was published again: %s now has %s, deployed is %s; "+
			"to take the new one, name it in chart.digest", info.Name, info.Version, described(source), info.Digest, expected)
	}
	kept := held.info
	kept.Republished = info.Digest
	return kept, nil
}

// named says where an unusable chart came from: the check itself only sees bytes.
func named(err error, source *enginev1.ChartSource) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return &fault.Error{Kind: f.Kind, Message: f.Message + " (from " + described(source) + ")"}
	}
	return err
}

func tidy(source *enginev1.ChartSource) *enginev1.ChartSource {
	own := proto.Clone(source).(*enginev1.ChartSource)
	own.Repository = strings.TrimSuffix(strings.TrimSpace(own.GetRepository()), "/")
	own.Url = strings.TrimSpace(own.GetUrl())
	own.Name = strings.TrimSpace(own.GetName())
	own.Version = strings.TrimSpace(own.GetVersion())
	own.Digest = strings.TrimSpace(own.GetDigest())
	return own
}

// sourceKey identifies a source, credentials included, without keeping them readable in memory.
func sourceKey(source *enginev1.ChartSource) string {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(source)
	if err != nil {
		encoded = []byte(source.String())
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:])
}
