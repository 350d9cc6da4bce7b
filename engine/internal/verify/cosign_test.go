package verify

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	digests "github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const bundleType = bundlePrefix + "v0.3+json"

// place is a repository in a registry, with one chart in it.
type place struct {
	*remote.Repository

	t     *testing.T
	chart ocispec.Descriptor
}

func newPlace(t *testing.T, options ...registry.Option) *place {
	t.Helper()
	server := httptest.NewServer(registry.New(append(options, registry.Logger(log.New(io.Discard, "", 0)))...))
	t.Cleanup(server.Close)
	repository, err := remote.NewRepository(strings.TrimPrefix(server.URL, "http://") + "/charts/hello")
	if err != nil {
		t.Fatal(err)
	}
	repository.PlainHTTP = true
	made := &place{Repository: repository, t: t}
	made.chart = made.manifest("", nil, "1.0.0", made.blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", packed))
	return made
}

func (p *place) blob(kind string, content []byte) ocispec.Descriptor {
	p.t.Helper()
	made := ocispec.Descriptor{MediaType: kind, Digest: digests.FromBytes(content), Size: int64(len(content))}
	if err := p.Blobs().Push(context.Background(), made, bytes.NewReader(content)); err != nil {
		p.t.Fatal(err)
	}
	return made
}

func (p *place) manifest(artifact string, subject *ocispec.Descriptor, tag string, layers ...ocispec.Descriptor) ocispec.Descriptor {
	p.t.Helper()
	content, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifact,
		Config: p.blob(ocispec.MediaTypeEmptyJSON, []byte("{}")), Layers: layers, Subject: subject,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	made := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digests.FromBytes(content), Size: int64(len(content))}
	if tag == "" {
		tag = made.Digest.String()
	}
	if err := p.Manifests().PushReference(context.Background(), made, bytes.NewReader(content), tag); err != nil {
		p.t.Fatal(err)
	}
	return made
}

func (p *place) digest() string { return p.chart.Digest.String() }

// sign signs as cosign does for keys: SHA-256, PKCS#1 v1.5 for RSA, the message itself for Ed25519.
func sign(t *testing.T, key crypto.Signer, message []byte) []byte {
	t.Helper()
	hash, sum := crypto.SHA256, sha256.Sum256(message)
	text := sum[:]
	if _, pure := key.(ed25519.PrivateKey); pure {
		hash, text = crypto.Hash(0), message
	}
	signature, err := key.Sign(rand.Reader, text, hash)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

func payload(digest string) []byte {
	return []byte(`{"critical":{"identity":{"docker-reference":"x"},"image":{"docker-manifest-digest":"` + digest +
		`"},"type":"cosign container image signature"},"optional":null}`)
}

// signWithTag keeps signatures where `cosign sign` has kept them since its first version.
func (p *place) signWithTag(about string, keys ...crypto.Signer) {
	p.t.Helper()
	var layers []ocispec.Descriptor
	for _, key := range keys {
		layer := p.blob(simpleSigning, payload(about))
		layer.Annotations = map[string]string{signatureNote: base64.StdEncoding.EncodeToString(sign(p.t, key, payload(about)))}
		layers = append(layers, layer)
	}
	p.manifest("", nil, strings.Replace(p.digest(), ":", "-", 1)+".sig", layers...)
}

// signWithBundle keeps a signature as a referrer, as `cosign sign` does since version 3.
func (p *place) signWithBundle(about, predicate string, key crypto.Signer) {
	p.t.Helper()
	said := []byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"x","digest":{"sha256":"` +
		strings.TrimPrefix(about, "sha256:") + `"}}],"predicateType":"` + predicate + `","predicate":{}}`)
	content, err := json.Marshal(map[string]any{
		"mediaType":            bundleType,
		"verificationMaterial": map[string]any{"publicKey": map[string]string{"hint": "x"}},
		"dsseEnvelope": map[string]any{
			"payload": said, "payloadType": intoto,
			"signatures": []any{map[string]any{"sig": sign(p.t, key, encoded(intoto, said))}},
		},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.manifest(bundleType, &p.chart, "", p.blob(bundleType, content))
}

func (p *place) check(keys ...crypto.Signer) (Signer, error) {
	p.t.Helper()
	var files [][]byte
	for _, key := range keys {
		files = append(files, public(p.t, key))
	}
	return Cosign(context.Background(), "oci://x/charts/hello", p, p.digest(), files)
}

func public(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func newKeys(t *testing.T) map[string]crypto.Signer {
	t.Helper()
	p256, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p384, err2 := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	old, err3 := rsa.GenerateKey(rand.Reader, 2048)
	_, new25519, err4 := ed25519.GenerateKey(rand.Reader)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return map[string]crypto.Signer{"P-256": p256, "P-384": p384, "RSA": old, "Ed25519": new25519}
}

func TestCosignWithEveryKindOfKey(t *testing.T) {
	keys := newKeys(t)
	for name, key := range keys {
		other := keys["P-256"]
		if name == "P-256" {
			other = keys["RSA"]
		}
		tagged := newPlace(t)
		tagged.signWithTag(tagged.digest(), other, key)
		for _, supported := range []bool{false, true} {
			referred := newPlace(t, registry.WithReferrersSupport(supported))
			referred.signWithBundle(referred.digest(), signPredicate, key)
			for form, at := range map[string]*place{"tag": tagged, "bundle": referred} {
				signer, err := at.check(key)
				if err != nil || !strings.HasPrefix(signer.Key, "SHA256:") {
					t.Errorf("%s, %s, referrers %v: %+v, %v", name, form, supported, signer, err)
				}
			}
		}
	}
}

func TestCosignThatIsNotGood(t *testing.T) {
	keys := newKeys(t)
	mine, theirs := keys["P-256"], keys["Ed25519"]
	name := func(key crypto.Signer) string {
		read, err := readKeys("x", [][]byte{public(t, key)})
		if err != nil {
			t.Fatal(err)
		}
		return read[0].name
	}
	another := "sha256:" + strings.Repeat("ab", 32)
	for text, row := range map[string]struct {
		prepare func(*place)
		parts   []string
	}{
		"unsigned":                 {func(*place) {}, []string{"no cosign signature", "expected one by " + name(mine)}},
		"by another":               {func(p *place) { p.signWithTag(p.digest(), theirs) }, []string{"none of the 1 signatures", "expected " + name(mine)}},
		"for another":              {func(p *place) { p.signWithTag(another, mine) }, []string{"for another chart", "got " + another}},
		"bundle by another":        {func(p *place) { p.signWithBundle(p.digest(), signPredicate, theirs) }, []string{"none of the 1", name(mine)}},
		"bundle for another":       {func(p *place) { p.signWithBundle(another, signPredicate, mine) }, []string{"for another chart", "got " + another}},
		"statement that isn't one": {func(p *place) { p.signWithBundle(p.digest(), "https://slsa.dev/provenance/v1", mine) }, []string{"no cosign signature"}},
		"damaged": {func(p *place) {
			layer := p.blob(simpleSigning, payload(p.digest()))
			layer.Annotations = map[string]string{signatureNote: base64.StdEncoding.EncodeToString([]byte("hunter2"))}
			p.manifest("", nil, strings.Replace(p.digest(), ":", "-", 1)+".sig", layer)
		}, []string{"none of the 1 signatures"}},
	} {
		t.Run(text, func(t *testing.T) {
			at := newPlace(t, registry.WithReferrersSupport(true))
			row.prepare(at)
			_, err := at.check(mine)
			wantInvalid(t, err, append(row.parts, "oci://x/charts/hello", at.digest())...)
		})
	}
}

func TestKeysThatAreNone(t *testing.T) {
	at := newPlace(t)
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	_, err = at.check(weak)
	wantInvalid(t, err, "2048 bits")
	der, err := x509.MarshalPKCS8PrivateKey(newKeys(t)["P-256"])
	if err != nil {
		t.Fatal(err)
	}
	for part, key := range map[string][]byte{
		"not PEM":     []byte("hunter2"),
		"private key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		"PUBLIC KEY":  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"parsed":      pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
	} {
		_, err := Cosign(context.Background(), "x", at, at.digest(), [][]byte{key})
		wantInvalid(t, err, "public key 1", part)
	}
	_, err = Cosign(context.Background(), "x", at, at.digest(), nil)
	wantInvalid(t, err, "no public key is given")
}

// A registry that fails is not a signature that is missing.
func TestARegistryThatFails(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oops", http.StatusForbidden) }))
	t.Cleanup(server.Close)
	repository, err := remote.NewRepository(strings.TrimPrefix(server.URL, "http://") + "/charts/hello")
	if err != nil {
		t.Fatal(err)
	}
	repository.PlainHTTP = true
	_, err = Cosign(context.Background(), "x", repository, "sha256:"+strings.Repeat("ab", 32), [][]byte{public(t, newKeys(t)["P-256"])})
	if !fault.Is(err, enginev1.Fault_CHART_UNAVAILABLE) || !strings.Contains(err.Error(), "HTTP 403") {
		t.Fatalf("got %v", err)
	}
}
