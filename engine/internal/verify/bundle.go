package verify

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	digests "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	bundlePrefix = "application/vnd.dev.sigstore.bundle."
	intoto       = "application/vnd.in-toto+json"
	// signPredicate marks a statement as a signature; others of the same key say other things about a chart.
	signPredicate = "https://sigstore.dev/cosign/sign/v1"
)

// bundle is as much of a Sigstore bundle as a signature by a key needs.
type bundle struct {
	Envelope struct {
		Payload     []byte `json:"payload"`
		PayloadType string `json:"payloadType"`
		Signatures  []struct {
			Signature []byte `json:"sig"`
		} `json:"signatures"`
	} `json:"dsseEnvelope"`
}

// statement is what an in-toto envelope carries.
type statement struct {
	PredicateType string `json:"predicateType"`
	Subject       []struct {
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
}

var errEnough = errors.New("enough")

// referring reads the bundles that refer to a manifest.
func referring(ctx context.Context, from Repository, manifest string) ([]claim, error) {
	of := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digests.Digest(manifest)}
	var found []ocispec.Descriptor
	err := from.Referrers(ctx, of, "", func(page []ocispec.Descriptor) error {
		for _, one := range page {
			if strings.HasPrefix(one.ArtifactType, bundlePrefix) {
				found = append(found, one)
			}
		}
		if len(found) > maxSignatures {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) && !missing(err) {
		return nil, err
	}
	var claims []claim
	for _, one := range found {
		layers, err := layersOf(ctx, from, one)
		if err != nil {
			return nil, err
		}
		for _, layer := range layers {
			if !strings.HasPrefix(layer.MediaType, bundlePrefix) {
				continue
			}
			body, err := read(ctx, from, layer, maxPayload)
			if err != nil {
				return nil, err
			}
			claims = append(claims, bundled(body)...)
		}
	}
	return claims, nil
}

// bundled reads the claims of one bundle; what is no signature claims nothing.
func bundled(body []byte) []claim {
	var read bundle
	if json.Unmarshal(body, &read) != nil || read.Envelope.PayloadType != intoto {
		return nil
	}
	var said statement
	if json.Unmarshal(read.Envelope.Payload, &said) != nil || said.PredicateType != signPredicate {
		return nil
	}
	var claims []claim
	message := encoded(read.Envelope.PayloadType, read.Envelope.Payload)
	for _, signature := range read.Envelope.Signatures {
		for _, subject := range said.Subject {
			claims = append(claims, claim{message, signature.Signature, "sha256:" + subject.Digest["sha256"]})
		}
	}
	return claims
}

// encoded is what a DSSE signature signs (its "pre-authentication encoding").
func encoded(kind string, payload []byte) []byte {
	return []byte("DSSEv1 " + strconv.Itoa(len(kind)) + " " + kind + " " + strconv.Itoa(len(payload)) + " " + string(payload))
}
