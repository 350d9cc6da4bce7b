package verify

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"helm.sh/helm/v4/pkg/provenance"
)

const (
	maxProvenance = 1 << 20
	maxKeyring    = 1 << 20
	// maxIssuers bounds how many signatures of one file are looked at for messages.
	maxIssuers = 20
)

// Signer is whose signature was found good.
type Signer struct {
	Identity string // of a PGP key; empty for a cosign key
	Key      string // the PGP key's id, or the fingerprint of the cosign key
}

// Provenance checks a packed chart against its .prov file with the public keys of keyrings, armored or binary. The
// file name is the one the chart was published under; if it is empty, the digest alone decides. Where names the chart
// in messages.
func Provenance(where, filename string, packed, prov []byte, keyrings [][]byte) (Signer, error) {
	ring, err := readKeyrings(where, keyrings)
	if err != nil {
		return Signer{}, err
	}
	if len(prov) > maxProvenance {
		return Signer{}, invalid("the provenance file of %s is larger than 1 MiB", where)
	}
	block, _ := clearsign.Decode(prov)
	if block == nil || block.ArmoredSignature == nil {
		return Signer{}, invalid("the provenance file of %s has no PGP signature", where)
	}
	if filename == "" {
		filename = nameFor(block.Plaintext, packed)
	}
	checked, err := (&provenance.Signatory{KeyRing: ring}).Verify(packed, prov, filename)
	if err != nil {
		return Signer{}, explain(where, filename, packed, prov, ring, err)
	}
	return Signer{Identity: identity(checked.SignedBy), Key: keyID(checked.SignedBy.PrimaryKey.KeyId)}, nil
}

// Unsigned is what is said of a chart without a provenance file.
func Unsigned(where string, keyrings [][]byte) error {
	ring, err := readKeyrings(where, keyrings)
	if err != nil {
		return err
	}
	return invalid("%s has no provenance file: expected one signed by %s", where, expected(ring))
}

// explain says what was expected and what was found.
func explain(where, filename string, packed, prov []byte, ring openpgp.EntityList, err error) error {
	block, _ := clearsign.Decode(prov) // again: checking has read the signature to its end
	var signature pgperrors.SignatureError
	switch {
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return invalid("%s is signed by the unknown key %s: expected %s", where, issuers(block), expected(ring))
	case errors.Is(err, pgperrors.ErrKeyExpired):
		return invalid("%s is signed by the key %s, which has expired", where, issuers(block))
	case errors.Is(err, pgperrors.ErrKeyRevoked):
		return invalid("%s is signed by the key %s, which was revoked", where, issuers(block))
	case errors.Is(err, pgperrors.ErrSignatureExpired):
		return invalid("the signature of %s by the key %s has expired", where, issuers(block))
	case errors.As(err, &signature):
		return invalid("the provenance file of %s was changed after the key %s signed it", where, issuers(block))
	}
	sums := &provenance.SumCollection{}
	if provenance.ParseMessageBlock(block.Plaintext, nil, sums) != nil {
		return invalid("the provenance file of %s cannot be read", where)
	}
	if want, ok := sums.Files[filename]; ok {
		return invalid("%s is not the chart that was signed: expected %s, got %s", where, want, digestOf(packed))
	}
	return invalid("the provenance file of %s is not about this chart (%s): it names %s",
		where, strings.TrimSpace(filename+" "+digestOf(packed)), strings.Join(slices.Sorted(maps.Keys(sums.Files)), ", "))
}

// nameFor finds the name that a provenance file gives to exactly these bytes, or else the only name it has: Helm's own
// check, which comes after that of the signature, then finds the difference.
func nameFor(plaintext, packed []byte) string {
	sums := &provenance.SumCollection{}
	if provenance.ParseMessageBlock(plaintext, nil, sums) != nil {
		return ""
	}
	named := slices.Sorted(maps.Keys(sums.Files))
	for _, name := range named {
		if sums.Files[name] == digestOf(packed) {
			return name
		}
	}
	if len(named) == 1 {
		return named[0]
	}
	return ""
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func readKeyrings(where string, keyrings [][]byte) (openpgp.EntityList, error) {
	var all openpgp.EntityList
	for i, data := range keyrings {
		ring, err := readKeyring(data)
		if err != nil {
			return nil, invalid("keyring %d for %s cannot be read: %v", i+1, where, err)
		}
		all = append(all, ring...)
	}
	if len(all) == 0 {
		return nil, invalid("no PGP key is given to verify %s with", where)
	}
	return all, nil
}

// readKeyring takes what `gpg --export`, with or without --armor, writes; several armored keys may follow each other.
func readKeyring(data []byte) (openpgp.EntityList, error) {
	switch {
	case len(data) > maxKeyring:
		return nil, errors.New("it is larger than 1 MiB")
	case len(data) > 12 && string(data[8:12]) == "KBXf":
		return nil, errors.New("it is a keybox: give the output of gpg --export")
	case !bytes.Contains(data, []byte("-----BEGIN PGP")):
		ring, err := openpgp.ReadKeyRing(bytes.NewReader(data))
		if err != nil || len(ring) == 0 {
			return nil, errors.New("it holds no PGP key")
		}
		return ring, nil
	}
	var all openpgp.EntityList
	// One reader for all: the decoder would otherwise read ahead into the next key, and lose it.
	for rest := bufio.NewReader(bytes.NewReader(data)); ; {
		block, err := armor.Decode(rest)
		if errors.Is(err, io.EOF) && len(all) > 0 {
			return all, nil
		}
		if err != nil || block.Type != openpgp.PublicKeyType {
			return nil, errors.New("it is not a PGP public key block")
		}
		ring, err := openpgp.ReadKeyRing(block.Body)
		if err != nil {
			return nil, errors.New("it holds no PGP key")
		}
		all = append(all, ring...)
	}
}

// issuers are the ids of the keys that a block says it was signed by.
func issuers(block *clearsign.Block) string {
	var found []string
	reader := packet.NewReader(block.ArmoredSignature.Body)
	for range maxIssuers {
		next, err := reader.Next()
		if err != nil {
			break
		}
		if signature, ok := next.(*packet.Signature); ok && signature.IssuerKeyId != nil {
			found = append(found, keyID(*signature.IssuerKeyId))
		}
	}
	if len(found) == 0 {
		return "(unnamed)"
	}
	return strings.Join(found, ", ")
}

func expected(ring openpgp.EntityList) string {
	names := make([]string, len(ring))
	for i, one := range ring {
		names[i] = keyID(one.PrimaryKey.KeyId)
		if name := identity(one); name != "" {
			names[i] += " (" + name + ")"
		}
	}
	return strings.Join(names, " or ")
}

func identity(entity *openpgp.Entity) string {
	if primary := entity.PrimaryIdentity(); primary != nil {
		return primary.Name
	}
	return ""
}

func keyID(id uint64) string { return fmt.Sprintf("%016X", id) }
