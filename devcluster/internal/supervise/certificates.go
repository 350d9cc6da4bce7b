package supervise

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// renewBefore keeps a cluster that runs for weeks from outliving its certificates.
	renewBefore = 60 * 24 * time.Hour
)

// identity is a key pair in PEM, with the certificate as parsed.
type identity struct {
	certificate []byte
	key         []byte
	parsed      *x509.Certificate
	parsedKey   *ecdsa.PrivateKey
}

// subject is one certificate to make: for a client, or for the API server if it has names.
type subject struct {
	file         string
	commonName   string
	organization string
	names        []string
	addresses    []net.IP
}

var subjects = []subject{
	{
		file: "kube-apiserver", commonName: "kube-apiserver",
		names:     []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		addresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.ParseIP(kubernetesServiceIP)},
	},
	{file: "admin", commonName: "admin", organization: "system:masters"},
	{file: "kube-controller-manager", commonName: "system:kube-controller-manager"},
	{file: "kube-scheduler", commonName: "system:kube-scheduler"},
	// KWOK plays every kubelet at once and deletes their pods: no built-in role covers that.
	{file: "kwok", commonName: "kwok", organization: "system:masters"},
}

// identities are all key pairs of a cluster; "ca" is its authority.
type identities map[string]identity

// ensureCertificates reads what an earlier start left and makes what is missing or about to expire.
func ensureCertificates(dir string, now time.Time) (identities, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	authority, err := readIdentity(dir, "ca")
	if err != nil {
		return nil, err
	}
	if authority == nil || expires(authority.parsed, now) {
		if authority, err = makeAuthority(dir, now); err != nil {
			return nil, err
		}
	}
	all := identities{"ca": *authority}
	for _, subject := range subjects {
		found, err := readIdentity(dir, subject.file)
		if err != nil {
			return nil, err
		}
		if found == nil || expires(found.parsed, now) || found.parsed.CheckSignatureFrom(authority.parsed) != nil {
			if found, err = makeIdentity(dir, subject, authority, now); err != nil {
				return nil, err
			}
		}
		all[subject.file] = *found
	}
	return all, ensureServiceAccountKey(dir)
}

func expires(certificate *x509.Certificate, now time.Time) bool {
	return now.Add(renewBefore).After(certificate.NotAfter) || now.Before(certificate.NotBefore)
}

func makeAuthority(dir string, now time.Time) (*identity, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "pilothouse development cluster"},
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	return sign(dir, "ca", template, nil, now)
}

func makeIdentity(dir string, subject subject, authority *identity, now time.Time) (*identity, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: subject.commonName},
		NotAfter:    now.Add(certificateLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		DNSNames:    subject.names,
		IPAddresses: subject.addresses,
	}
	if subject.names != nil {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	if subject.organization != "" {
		template.Subject.Organization = []string{subject.organization}
	}
	return sign(dir, subject.file, template, authority, now)
}

// sign makes a key and its certificate; without an authority it signs itself.
func sign(dir, name string, template *x509.Certificate, authority *identity, now time.Time) (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, err
	}
	template.NotBefore = now.Add(-5 * time.Minute)
	parent, signer := template, key
	if authority != nil {
		parent, signer = authority.parsed, authority.parsedKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	certificatePEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	// The key first: a certificate without its key is garbage, a key without certificate is not.
	if err := writeFile(filepath.Join(dir, name+".key"), keyPEM); err != nil {
		return nil, err
	}
	if err := writeFile(filepath.Join(dir, name+".crt"), certificatePEM); err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	return &identity{certificate: certificatePEM, key: keyPEM, parsed: parsed, parsedKey: key}, err
}

// readIdentity returns nil if the pair was never made or only half written.
func readIdentity(dir, name string) (*identity, error) {
	certificatePEM, err := os.ReadFile(filepath.Join(dir, name+".crt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, err
	}
	damaged := fmt.Errorf("%s is damaged: delete %s to get new certificates", filepath.Join(dir, name+".crt"), dir)
	block, _ := pem.Decode(certificatePEM)
	if block == nil {
		return nil, damaged
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, damaged
	}
	key, err := decodeKey(keyPEM)
	if err != nil {
		return nil, damaged
	}
	if !key.PublicKey.Equal(parsed.PublicKey) {
		return nil, nil
	}
	return &identity{certificate: certificatePEM, key: keyPEM, parsed: parsed, parsedKey: key}, nil
}

// ensureServiceAccountKey makes the key that signs tokens; tokens stay valid across restarts with it.
func ensureServiceAccountKey(dir string) error {
	path := filepath.Join(dir, "service-account.key")
	content, err := os.ReadFile(path)
	if err == nil {
		if _, err := decodeKey(content); err != nil {
			return fmt.Errorf("%s is damaged: delete %s to get new certificates", path, dir)
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return err
	}
	return writeFile(path, encoded)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func decodeKey(content []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, errors.New("no PEM block")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}
