package chart

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"helm.sh/helm/v4/pkg/provenance"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/pilothouse-dev/pilothouse/engine/internal/devregistry"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

func verifying(t *testing.T) *Store {
	t.Helper()
	s, err := New(Options{Dir: t.TempDir(), Verify: NewSignatures()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func signer(t *testing.T, name string) (*openpgp.Entity, []byte) {
	t.Helper()
	made, err := openpgp.NewEntity(name, "", name+"@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	var ring bytes.Buffer
	if err := made.Serialize(&ring); err != nil {
		t.Fatal(err)
	}
	return made, ring.Bytes()
}

func TestProvenanceIsCheckedForEveryRequest(t *testing.T) {
	jane, ring := signer(t, "jane")
	_, other := signer(t, "john")
	r, s, ctx := newRepository(t, "1.0.0", "1.1.0"), verifying(t), context.Background()
	prov, err := (&provenance.Signatory{Entity: jane}).ClearSign(r.charts["1.0.0"], "small-1.0.0.tgz", []byte("name: small"))
	if err != nil {
		t.Fatal(err)
	}
	r.charts["1.0.0.tgz.prov"] = []byte(prov)
	asking := func(version string, keyrings ...[]byte) error {
		source := r.source(version)
		source.Verify = &enginev1.Verification{Keyrings: keyrings}
		_, err := s.Resolve(ctx, source)
		return err
	}
	// Somebody else has it in the cache already, unverified: that proves nothing.
	for _, version := range []string{"1.0.0", "1.1.0"} {
		if _, err := s.Resolve(ctx, r.source(version)); err != nil {
			t.Fatal(err)
		}
	}
	wantFault(t, asking("1.0.0", other), enginev1.Fault_CHART_NOT_VERIFIED, "unknown key", "expected", "john")
	if err := asking("1.0.0", other, ring); err != nil {
		t.Error(err)
	}
	wantFault(t, asking("1.0.0", other), enginev1.Fault_CHART_NOT_VERIFIED, "unknown key")
	wantFault(t, asking("1.1.0", ring), enginev1.Fault_CHART_NOT_VERIFIED, "no provenance file", "jane")
	wantFault(t, asking("1.0.0"), enginev1.Fault_CHART_NOT_VERIFIED, "no key was given")
	inline := &enginev1.ChartSource{Inline: r.charts["1.0.0"], Verify: &enginev1.Verification{PublicKeys: [][]byte{ring}}}
	_, err = s.Resolve(ctx, inline)
	wantFault(t, err, enginev1.Fault_CHART_NOT_VERIFIED, "only charts from an OCI registry")
	r.down.Store(true)
	wantFault(t, asking("~1.0", ring), enginev1.Fault_CHART_UNAVAILABLE)
}

func (r *ociRegistry) cosign(t *testing.T, manifest string, key *ecdsa.PrivateKey) {
	t.Helper()
	at, err := remote.NewRepository(r.host() + "/charts/small")
	if err != nil {
		t.Fatal(err)
	}
	at.PlainHTTP = true
	if err := devregistry.Cosign(context.Background(), at, manifest, key); err != nil {
		t.Fatal(err)
	}
}

func publicKey(t *testing.T) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, public, err := devregistry.NewSigner()
	if err != nil {
		t.Fatal(err)
	}
	return key, public
}

func TestCosignSignatures(t *testing.T) {
	r, s, ctx := newRegistry(t, "", false), verifying(t), context.Background()
	key, public := publicKey(t)
	_, other := publicKey(t)
	manifest, _ := r.push(t, "", small(t, "1.0.0"), "1.0.0")
	r.push(t, "", small(t, "1.1.0"), "1.1.0")
	r.cosign(t, manifest, key)
	asking := func(version string, keys ...[]byte) error {
		source := r.source(version)
		source.Verify = &enginev1.Verification{PublicKeys: keys}
		_, err := s.Resolve(ctx, source)
		return err
	}
	if err := asking("1.0.0", public); err != nil {
		t.Error(err)
	}
	wantFault(t, asking("1.0.0", other), enginev1.Fault_CHART_NOT_VERIFIED, "none of the 1 signatures")
	wantFault(t, asking("1.1.0", public), enginev1.Fault_CHART_NOT_VERIFIED, "no cosign signature")
}
