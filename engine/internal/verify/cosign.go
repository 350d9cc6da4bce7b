package verify

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	digests "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const (
	simpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureNote = "dev.cosignproject.cosign/signature"
	maxManifest   = 1 << 20
	maxPayload    = 256 << 10
	maxSignatures = 50
)

// Repository is the chart's repository in its registry; oras' remote.Repository is one.
type Repository interface {
	content.Resolver
	content.Fetcher
	Referrers(ctx context.Context, of ocispec.Descriptor, artifactType string, found func([]ocispec.Descriptor) error) error
}

// claim is a signature with what it says: that a manifest is meant.
type claim struct {
	message   []byte // what was signed
	signature []byte
	digest    string // of the manifest it is about
}

// Cosign checks that the manifest with this digest was signed with one of the public keys (PEM). Signatures are
// looked for under the tag that cosign gives them, and among the manifest's referrers in the newer bundle form. Where
// names the chart in messages.
func Cosign(ctx context.Context, where string, from Repository, manifest string, keys [][]byte) (Signer, error) {
	trusted, err := readKeys(where, keys)
	if err != nil {
		return Signer{}, err
	}
	claims, err := tagged(ctx, from, manifest)
	if err != nil {
		return Signer{}, unreadable(where, err)
	}
	if signer, ok := judge(claims, trusted, manifest); ok {
		return signer, nil
	}
	bundled, err := referring(ctx, from, manifest)
	if err != nil {
		return Signer{}, unreadable(where, err)
	}
	if signer, ok := judge(bundled, trusted, manifest); ok {
		return signer, nil
	}
	return Signer{}, refused(where, append(claims, bundled...), trusted, manifest)
}

func judge(claims []claim, trusted []publicKey, manifest string) (Signer, bool) {
	for _, one := range claims {
		for _, key := range trusted {
			if one.digest == manifest && key.signed(one.message, one.signature) {
				return Signer{Key: key.name}, true
			}
		}
	}
	return Signer{}, false
}

func refused(where string, claims []claim, trusted []publicKey, manifest string) error {
	if len(claims) == 0 {
		return invalid("%s (%s) has no cosign signature: expected one by %s", where, manifest, names(trusted))
	}
	for _, one := range claims {
		for _, key := range trusted {
			if key.signed(one.message, one.signature) {
				return invalid("the signature of %s by %s is for another chart: expected %s, got %s", where, key.name, manifest, one.digest)
			}
		}
	}
	return invalid("none of the %d signatures of %s (%s) is by an expected key: expected %s", len(claims), where, manifest, names(trusted))
}

// tagged reads the signatures that `cosign sign` keeps under the tag sha256-<hex>.sig.
func tagged(ctx context.Context, from Repository, manifest string) ([]claim, error) {
	algorithm, hex, found := strings.Cut(manifest, ":")
	if !found {
		return nil, invalid("%q is not a digest", manifest)
	}
	at, err := from.Resolve(ctx, algorithm+"-"+hex+".sig")
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	layers, err := layersOf(ctx, from, at)
	if err != nil {
		return nil, err
	}
	var claims []claim
	for _, layer := range layers {
		signature, err := base64.StdEncoding.DecodeString(layer.Annotations[signatureNote])
		if err != nil || len(signature) == 0 || layer.MediaType != simpleSigning {
			continue
		}
		payload, err := read(ctx, from, layer, maxPayload)
		if err != nil {
			return nil, err
		}
		claims = append(claims, claim{payload, signature, claimed(payload)})
	}
	return claims, nil
}

// claimed is the digest that a payload in the "simple signing" form is about.
func claimed(payload []byte) string {
	var said struct {
		Critical struct {
			Type  string `json:"type"`
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
		} `json:"critical"`
	}
	if json.Unmarshal(payload, &said) != nil || said.Critical.Type != "cosign container image signature" {
		return ""
	}
	return said.Critical.Image.Digest
}

func layersOf(ctx context.Context, from Repository, at ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	body, err := read(ctx, from, at, maxManifest)
	if err != nil {
		return nil, err
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(body, &manifest); err != nil {
		return nil, errors.New("the manifest of a signature is not JSON")
	}
	return manifest.Layers[:min(len(manifest.Layers), maxSignatures)], nil
}

// read fetches something small and checks it against its own digest.
func read(ctx context.Context, from Repository, what ocispec.Descriptor, most int64) ([]byte, error) {
	if what.Size > most {
		return nil, errors.New("a signature is too large to be one")
	}
	stream, err := from.Fetch(ctx, what)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	body, err := io.ReadAll(io.LimitReader(stream, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > most || digests.FromBytes(body) != what.Digest {
		return nil, errors.New("the registry sent something else than a signature")
	}
	return body, nil
}

func missing(err error) bool {
	var answer *errcode.ErrorResponse
	return errors.Is(err, errdef.ErrNotFound) || (errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound)
}

// unreadable is about the registry, not about the signature. Its library puts whole URLs into errors.
func unreadable(where string, err error) error {
	var known *fault.Error
	var answer *errcode.ErrorResponse
	switch {
	case errors.Is(err, egress.ErrRefused), errors.As(err, &known):
		return err
	case errors.As(err, &answer):
		return fault.Wrap(enginev1.Fault_CHART_UNAVAILABLE, err, "the signatures of %s cannot be read: HTTP %d", where, answer.StatusCode)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(enginev1.Fault_CHART_UNAVAILABLE, err, "the signatures of %s cannot be read in time", where)
	}
	return fault.Wrap(enginev1.Fault_CHART_UNAVAILABLE, err, "the signatures of %s cannot be read: %v", where, err)
}
