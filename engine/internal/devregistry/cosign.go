package devregistry

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"

	digests "github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"
)

// NewSigner makes a key for signatures; the bytes are its public half as `cosign public-key` prints it.
func NewSigner() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// Cosign signs a manifest the way `cosign sign --key` does, and keeps the signature beside it.
func Cosign(ctx context.Context, at *remote.Repository, manifest string, key *ecdsa.PrivateKey) error {
	said := []byte(`{"critical":{"identity":{"docker-reference":"x"},"image":{"docker-manifest-digest":"` + manifest +
		`"},"type":"cosign container image signature"},"optional":null}`)
	sum := sha256.Sum256(said)
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		return err
	}
	layer, err := push(ctx, at, "application/vnd.dev.cosign.simplesigning.v1+json", said)
	if err != nil {
		return err
	}
	layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature)}
	config, err := push(ctx, at, ocispec.MediaTypeImageConfig, []byte("{}"))
	if err != nil {
		return err
	}
	content, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: config, Layers: []ocispec.Descriptor{layer},
	})
	if err != nil {
		return err
	}
	whole, err := push(ctx, at, ocispec.MediaTypeImageManifest, content)
	if err != nil {
		return err
	}
	return at.Tag(ctx, whole, strings.Replace(manifest, ":", "-", 1)+".sig")
}

func push(ctx context.Context, at *remote.Repository, kind string, content []byte) (ocispec.Descriptor, error) {
	made := ocispec.Descriptor{MediaType: kind, Digest: digests.FromBytes(content), Size: int64(len(content))}
	return made, at.Push(ctx, made, bytes.NewReader(content))
}
