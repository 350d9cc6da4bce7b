package verify

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"helm.sh/helm/v4/pkg/provenance"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const file = "hello-1.0.0.tgz"

var packed = []byte("as good as a chart")

func entity(t *testing.T, name string, settings *packet.Config) *openpgp.Entity {
	t.Helper()
	made, err := openpgp.NewEntity(name, "", strings.ToLower(name)+"@example.com", settings)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// signedBy makes a .prov file with Helm's own code.
func signedBy(t *testing.T, who *openpgp.Entity, content []byte) []byte {
	t.Helper()
	text, err := (&provenance.Signatory{Entity: who}).ClearSign(content, file, []byte("name: hello\nversion: 1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

func keyring(t *testing.T, armored bool, who ...*openpgp.Entity) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, one := range who {
		var raw bytes.Buffer
		if err := one.Serialize(&raw); err != nil {
			t.Fatal(err)
		}
		if !armored {
			out.Write(raw.Bytes())
			continue
		}
		w, err := armor.Encode(&out, openpgp.PublicKeyType, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(raw.Bytes())
		_ = w.Close()
		out.WriteString("\n")
	}
	return out.Bytes()
}

func wantInvalid(t *testing.T, err error, parts ...string) {
	t.Helper()
	if !fault.Is(err, enginev1.Fault_CHART_NOT_VERIFIED) {
		t.Fatalf("got %v, want a fault of kind CHART_NOT_VERIFIED", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Fatalf("%q does not say %q", err.Error(), part)
		}
	}
}

func TestProvenance(t *testing.T) {
	jane, john := entity(t, "Jane", nil), entity(t, "John", nil)
	prov := signedBy(t, jane, packed)
	for name, rings := range map[string][][]byte{
		"binary":     {keyring(t, false, jane)},
		"armored":    {keyring(t, true, jane)},
		"among many": {keyring(t, true, john), keyring(t, false, john, jane)},
		"in a row":   {keyring(t, true, john, jane)},
	} {
		for _, filename := range []string{file, ""} {
			signer, err := Provenance("hello 1.0.0", filename, packed, prov, rings)
			if err != nil || signer.Identity != "Jane <jane@example.com>" || signer.Key != keyID(jane.PrimaryKey.KeyId) {
				t.Errorf("%s: %+v, %v", name, signer, err)
			}
		}
	}
}

func TestProvenanceThatIsNotGood(t *testing.T) {
	jane, john := entity(t, "Jane", nil), entity(t, "John", nil)
	ring := [][]byte{keyring(t, true, jane)}
	prov := signedBy(t, jane, packed)
	changed := bytes.Replace(prov, []byte("version: 1.0.0"), []byte("version: 6.6.6"), 1)
	long := time.Now().Add(-48 * time.Hour)
	old := entity(t, "Old", &packet.Config{Time: func() time.Time { return long }, KeyLifetimeSecs: 3600})
	for name, row := range map[string]struct {
		filename string
		packed   []byte
		prov     []byte
		rings    [][]byte
		parts    []string
	}{
		"another key": {file, packed, signedBy(t, john, packed), ring,
			[]string{"unknown key " + keyID(john.PrimaryKey.KeyId), "expected " + keyID(jane.PrimaryKey.KeyId) + " (Jane <jane@example.com>)"}},
		"another chart":   {file, []byte("else"), prov, ring, []string{"expected " + digestOf(packed), "got " + digestOf([]byte("else"))}},
		"no such digest":  {"", []byte("else"), prov, ring, []string{"expected " + digestOf(packed), "got " + digestOf([]byte("else"))}},
		"another name":    {"other-1.0.0.tgz", packed, prov, ring, []string{"other-1.0.0.tgz", "it names " + file}},
		"changed":         {file, packed, changed, ring, []string{"was changed after the key " + keyID(jane.PrimaryKey.KeyId)}},
		"expired":         {file, packed, signedBy(t, old, packed), [][]byte{keyring(t, false, old)}, []string{"expired"}},
		"not a signature": {file, packed, []byte("name: hello"), ring, []string{"no PGP signature"}},
		"too large":       {file, packed, make([]byte, maxProvenance+1), ring, []string{"1 MiB"}},
		"no keyring":      {file, packed, prov, nil, []string{"no PGP key is given"}},
		"garbage keyring": {file, packed, prov, [][]byte{[]byte("hunter2")}, []string{"keyring 1", "no PGP key"}},
		"keybox":          {file, packed, prov, [][]byte{append(make([]byte, 8), "KBXf and more"...)}, []string{"gpg --export"}},
		"a message":       {file, packed, prov, [][]byte{prov}, []string{"keyring 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Provenance("hello 1.0.0", row.filename, row.packed, row.prov, row.rings)
			wantInvalid(t, err, row.parts...)
			if strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("%q repeats the keyring", err)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	good := digestOf(packed)
	for _, spelt := range []string{good, strings.ToUpper(good[7:]), " " + good[7:] + "\n"} {
		if err := Digest("hello", spelt, good); err != nil {
			t.Errorf("%q: %v", spelt, err)
		}
	}
	wantInvalid(t, Digest("hello", good, digestOf(nil)), "hello", "expected "+good, "got "+digestOf(nil))
}
