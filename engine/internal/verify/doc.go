// Package verify decides whether a chart is what its author signed.
//
// Three ways: Helm's provenance files with PGP keyrings, cosign's signatures with public keys, and digests that the
// user pins. All work on bytes given by the caller; only signatures of OCI charts are fetched, from the chart's own
// repository.
//
// What is not checked: transparency logs, certificates and identities of keyless signing, and the revocation of keys
// anywhere but in the given keyring. A key that the user names is trusted for as long as it is named.
//
// The rule to keep: a failed check is a fault of kind CHART_NOT_VERIFIED that says which key or digest was expected and
// what was found, so that nothing is installed and nobody has to guess.
package verify

import (
	"strings"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

func invalid(format string, args ...any) error {
	return fault.New(enginev1.Fault_CHART_NOT_VERIFIED, format, args...)
}

// Digest compares a chart's digest with the one that is pinned. What names the chart in the message.
func Digest(what, expected, got string) error {
	if normal(expected) == normal(got) {
		return nil
	}
	return invalid("%s is not the chart that is pinned: expected %s, got %s", what, normal(expected), normal(got))
}

// normal spells a sha256 digest in one way.
func normal(digest string) string {
	return "sha256:" + strings.TrimPrefix(strings.ToLower(strings.TrimSpace(digest)), "sha256:")
}
