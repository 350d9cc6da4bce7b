package verify

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	_ "crypto/sha512" // for P-384 and P-521
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"strings"
)

// publicKey is a key that signatures may be made with, and its name in messages.
type publicKey struct {
	key  crypto.PublicKey
	name string
}

// readKeys reads PEM files with one or more public keys each, as `cosign public-key` writes them.
func readKeys(where string, files [][]byte) ([]publicKey, error) {
	var all []publicKey
	for i, rest := range files {
		found := false
		for {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			parsed, err := parseKey(block)
			if err != nil {
				return nil, invalid("public key %d for %s cannot be used: %v", i+1, where, err)
			}
			sum := sha256.Sum256(block.Bytes)
			all = append(all, publicKey{parsed, "SHA256:" + hex.EncodeToString(sum[:])[:32]})
			found = true
		}
		if !found {
			return nil, invalid("public key %d for %s cannot be used: it is not PEM", i+1, where)
		}
	}
	if len(all) == 0 {
		return nil, invalid("no public key is given to verify %s with", where)
	}
	return all, nil
}

type keyError string

func (e keyError) Error() string { return string(e) }

func parseKey(block *pem.Block) (crypto.PublicKey, error) {
	if strings.Contains(block.Type, "PRIVATE") {
		return nil, keyError("it is a private key, which nobody else should have")
	}
	if block.Type != "PUBLIC KEY" {
		return nil, keyError("it is not a PEM block of type PUBLIC KEY")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, keyError("it cannot be parsed")
	}
	switch key := parsed.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return key, nil
	case *rsa.PublicKey:
		if key.N.BitLen() < 2048 {
			return nil, keyError("an RSA key needs at least 2048 bits")
		}
		return key, nil
	}
	return nil, keyError("it is neither ECDSA, RSA nor Ed25519")
}

// signed tells whether the key made this signature of this message. Cosign hashes with SHA-256 whatever the curve;
// other signers use the curve's own.
func (k publicKey) signed(message, signature []byte) bool {
	switch key := k.key.(type) {
	case *ecdsa.PublicKey:
		for _, hash := range []crypto.Hash{crypto.SHA256, curveHash(key)} {
			if ecdsa.VerifyASN1(key, digest(hash, message), signature) {
				return true
			}
		}
	case *rsa.PublicKey:
		sum := digest(crypto.SHA256, message)
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum, signature) == nil ||
			rsa.VerifyPSS(key, crypto.SHA256, sum, signature, nil) == nil
	case ed25519.PublicKey:
		return ed25519.Verify(key, message, signature)
	}
	return false
}

func curveHash(key *ecdsa.PublicKey) crypto.Hash {
	switch size := key.Curve.Params().BitSize; {
	case size > 384:
		return crypto.SHA512
	case size > 256:
		return crypto.SHA384
	}
	return crypto.SHA256
}

func digest(hash crypto.Hash, message []byte) []byte {
	h := hash.New()
	_, _ = h.Write(message)
	return h.Sum(nil)
}

func names(keys []publicKey) string {
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = key.name
	}
	return strings.Join(out, " or ")
}
