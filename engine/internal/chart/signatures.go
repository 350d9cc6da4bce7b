package chart

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/verify"
)

// NewSignatures returns a Verify that checks a chart with the keys its request brings. What the cache holds proves
// nothing, since others put charts there without any check; only these very bytes with these very keys do.
func NewSignatures() Verify {
	good := newRecent[bool](4096)
	return func(ctx context.Context, ask *Ask, located *Located, packed []byte) error {
		wanted := ask.GetVerify()
		if wanted == nil {
			return nil
		}
		key := digestOf(packed) + " " + fingerprint(wanted)
		if _, ok := good.get(key); ok {
			return nil
		}
		where := described(ask.ChartSource)
		if len(wanted.GetKeyrings()) == 0 && len(wanted.GetPublicKeys()) == 0 {
			return unverified("%s cannot be verified: no key was given", where)
		}
		if err := checkProvenance(ctx, where, located, packed, wanted.GetKeyrings()); err != nil {
			return err
		}
		if err := checkCosign(ctx, where, located, wanted.GetPublicKeys()); err != nil {
			return err
		}
		good.put(key, true, 1)
		return nil
	}
}

func checkProvenance(ctx context.Context, where string, located *Located, packed []byte, keyrings [][]byte) error {
	if len(keyrings) == 0 {
		return nil
	}
	if located.Provenance == nil {
		return verify.Unsigned(where, keyrings)
	}
	prov, err := located.Provenance(ctx)
	if fault.Is(err, enginev1.Fault_CHART_NOT_FOUND) {
		return verify.Unsigned(where, keyrings)
	}
	if err != nil {
		return err
	}
	_, err = verify.Provenance(where, "", packed, prov, keyrings)
	return err
}

func checkCosign(ctx context.Context, where string, located *Located, keys [][]byte) error {
	if len(keys) == 0 {
		return nil
	}
	if located.Signatures == nil {
		return unverified("%s cannot have a cosign signature: only charts from an OCI registry have one", where)
	}
	_, err := verify.Cosign(ctx, where, located.Signatures, located.Manifest, keys)
	return err
}

func unverified(format string, args ...any) error {
	return fault.New(enginev1.Fault_CHART_NOT_VERIFIED, format, args...)
}

func fingerprint(wanted *enginev1.Verification) string {
	hash := sha256.New()
	for _, keys := range [][][]byte{wanted.GetKeyrings(), wanted.GetPublicKeys()} {
		fmt.Fprintf(hash, "%d;", len(keys))
		for _, key := range keys {
			fmt.Fprintf(hash, "%d:", len(key))
			hash.Write(key)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}
