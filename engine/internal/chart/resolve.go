package chart

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
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
	digest string
	etag   string
	at     time.Time
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
	key := sourceKey(source)
	if info, ok := s.remembered(key, source); ok {
		return info, nil
	}
	type answer struct {
		info Info
		err  error
	}
	// Waiting is the caller's, the download is not: it goes on for the others when one caller leaves.
	result := s.flights.DoChan("resolve "+key, func() (any, error) {
		info, err := s.download(context.WithoutCancel(ctx), source, key)
		return answer{info, err}, nil
	})
	select {
	case <-ctx.Done():
		return Info{}, &fault.Error{Kind: enginev1.Fault_CANCELLED, Message: "resolving the chart was cancelled"}
	case got := <-result:
		if got.Err != nil {
			return Info{}, got.Err
		}
		a := got.Val.(answer)
		return a.info, a.err
	}
}

// remembered answers without a request, when that is certain enough and the chart is still there.
func (s *Store) remembered(key string, source *enginev1.ChartSource) (Info, bool) {
	known, ok := s.known.get(key)
	if !ok || (!settled(source) && !(plainURL(source) && time.Since(known.at) < urlFresh)) {
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
	if source.GetDigest() != "" || strings.Contains(source.GetUrl(), "@sha256:") {
		return true
	}
	_, ok := exact(source.GetVersion())
	return ok && source.GetUrl() == ""
}

func plainURL(source *enginev1.ChartSource) bool {
	return source.GetUrl() != ""
}

func (s *Store) download(ctx context.Context, source *enginev1.ChartSource, key string) (Info, error) {
	packed, etag, err := s.packed(ctx, source, key)
	if err != nil {
		return Info{}, err
	}
	if packed == nil { // not changed since
		known, _ := s.known.get(key)
		s.known.put(key, resolution{known.digest, etag, time.Now()}, 1)
		return s.Describe(known.digest)
	}
	info, err := s.Put(packed)
	if err != nil {
		return Info{}, named(err, source)
	}
	if !ociSource(source) && source.GetDigest() != "" && source.GetDigest() != info.Digest {
		return Info{}, invalid("the chart from %s is %s, but the pin says %s", shown(location(source)), info.Digest, source.GetDigest())
	}
	s.known.put(key, resolution{info.Digest, etag, time.Now()}, 1)
	return info, nil
}

func (s *Store) packed(ctx context.Context, source *enginev1.ChartSource, key string) ([]byte, string, error) {
	if ociSource(source) {
		packed, err := s.fromRegistry(ctx, source)
		return packed, "", err
	}
	if !plainURL(source) {
		packed, err := s.fromRepository(ctx, source)
		return packed, "", err
	}
	target, err := url.Parse(source.GetUrl())
	if err != nil || target.Host == "" || (target.Scheme != "http" && target.Scheme != "https" && !s.options.Plugins.Provides(target.Scheme)) {
		return nil, "", invalid("%q is not the URL of a chart", shown(source.GetUrl()))
	}
	etag := ""
	if known, ok := s.known.get(key); ok {
		if _, err := s.entry(known.digest); err == nil {
			etag = known.etag
		}
	}
	return s.get(ctx, source, target, etag, maxPacked)
}

func ociSource(source *enginev1.ChartSource) bool {
	return strings.HasPrefix(location(source), "oci://")
}

// named says where an unusable chart came from: the check itself only sees bytes.
func named(err error, source *enginev1.ChartSource) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return &fault.Error{Kind: f.Kind, Message: f.Message + " (from " + shown(location(source)) + ")"}
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
