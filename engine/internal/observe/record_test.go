package observe

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

func TestStamp(t *testing.T) {
	digest := strings.Repeat("ab", 20)
	for _, row := range []struct {
		text     string
		revision int
		want     string
	}{
		{"r7-" + digest, 7, digest},
		{"r7-" + digest, 8, ""}, // copied forward by someone's helm upgrade
		{"r7-host-1-x", 7, "host-1-x"},
		{"r07-x", 7, ""},
		{"7-x", 7, ""},
		{"r7", 7, ""},
		{"", 7, ""},
	} {
		if got := stamp(row.text, row.revision); got != row.want {
			t.Errorf("%q on revision %d: got %q, want %q", row.text, row.revision, got, row.want)
		}
	}
}

func TestDecodeRecord(t *testing.T) {
	head := raw.Head{Namespace: "ns", Name: recordPrefix + "app.v3", UID: "u", ResourceVersion: "9"}
	object, err := decodeRecord(head, []byte(`{"metadata":{"creationTimestamp":"2026-01-02T03:04:05Z",
		"labels":{"name":"app","owner":"helm","status":"deployed","version":"3"},
		"annotations":{"pilothouse.dev/digest":"r3-abc","pilothouse.dev/owner":"r2-me","pilothouse.dev/source":"r3-https://x@c y"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := record{
		release: releaseKey{"ns", "app"}, revision: 3, status: "deployed", stampDigest: "abc", stampSource: "https://x@c y",
		created: 1767323045000, secret: recordPrefix + "app.v3", uid: "u", secretState: "9",
	}
	if got := *object.(*recordObject).record; got != want {
		t.Fatalf("got %+v", got)
	}
	for _, other := range []string{
		`{"metadata":{"labels":{"name":"app","version":"x"}}}`,
		`{"metadata":{"labels":{"version":"1"}}}`,
		`{"metadata":{}}`,
	} {
		if object, err := decodeRecord(head, []byte(other)); err != nil || object.(*recordObject).record != nil {
			t.Errorf("took %s for a record (%v)", other, err)
		}
	}
}

func TestManifestOf(t *testing.T) {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write([]byte(`{"name":"app","chart":{"templates":[{"data":"e30="}]},"manifest":"kind: X"}`)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	encoded := []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))
	if got, err := manifestOf(encoded); err != nil || got != "kind: X" {
		t.Fatalf("got %q, %v", got, err)
	}
	for _, broken := range []string{"%", "aGVsbG8=", string(encoded[:len(encoded)/2])} {
		if _, err := manifestOf([]byte(broken)); err == nil {
			t.Errorf("read %q", broken)
		}
	}
}

func TestCompute(t *testing.T) {
	for _, row := range []struct {
		name, object string
		want         enginev1.ObjectState_State
	}{
		{"deployment without status", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"spec":{"replicas":1}}`, enginev1.ObjectState_IN_PROGRESS},
		{"terminating", `{"apiVersion":"v1","kind":"Service","metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`, enginev1.ObjectState_TERMINATING},
		{"custom", `{"apiVersion":"x/v1","kind":"Y","metadata":{},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, enginev1.ObjectState_CURRENT},
	} {
		got, err := viewer{}.compute([]byte(row.object))
		if err != nil || got.state != row.want {
			t.Errorf("%s: got %+v, %v", row.name, got, err)
		}
		if got.state == enginev1.ObjectState_CURRENT && got.message != "" {
			t.Errorf("%s: says %q of nothing", row.name, got.message)
		}
	}
	got, err := computeMetadata([]byte(`{"metadata":{"generation":3,"ownerReferences":[{"controller":true}]}}`))
	if err != nil || !got.controlled || got.generation != 3 || got.state != enginev1.ObjectState_CURRENT {
		t.Errorf("got %+v, %v", got, err)
	}
}
