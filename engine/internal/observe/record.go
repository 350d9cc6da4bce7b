package observe

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unique"

	"helm.sh/helm/v4/pkg/release/common"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

const (
	// recordSelector finds Helm's release records among Secrets.
	recordSelector = "owner=helm"
	recordPrefix   = "sh.helm.release.v1."

	// DigestStamp, OwnerStamp and SourceStamp are the annotations our own actions put on the record they make.
	DigestStamp = "pilothouse.dev/digest"
	OwnerStamp  = "pilothouse.dev/owner"
	SourceStamp = "pilothouse.dev/source"
)

// releaseKey names a Helm release in its cluster.
type releaseKey struct{ namespace, name string }

// record is what a release record's metadata tells, and no more.
type record struct {
	release                  releaseKey
	revision                 int
	status                   string
	stampDigest, stampOwner  string
	stampSource              string
	created                  int64
	secret, uid, secretState string // of the Secret: its name, uid and resourceVersion
}

// recordObject carries a record through a reflector.
type recordObject struct {
	raw.Head
	record *record
}

// decodeRecord reads a Secret's metadata. A Secret that only looks like a record gives none.
func decodeRecord(head raw.Head, data []byte) (runtime.Object, error) {
	object := &recordObject{Head: head}
	var secret struct {
		Metadata struct {
			CreationTimestamp time.Time         `json:"creationTimestamp"`
			Labels            map[string]string `json:"labels"`
			Annotations       map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &secret); err != nil {
		return nil, err
	}
	labels := secret.Metadata.Labels
	revision, err := strconv.Atoi(labels["version"])
	if err != nil || revision < 1 || labels["name"] == "" || !strings.HasPrefix(head.Name, recordPrefix) {
		return object, nil //nolint:nilerr // not a record, which is no error
	}
	object.record = &record{
		release:     releaseKey{intern(head.Namespace), labels["name"]},
		revision:    revision,
		status:      intern(labels["status"]),
		stampDigest: stamp(secret.Metadata.Annotations[DigestStamp], revision),
		stampOwner:  intern(stamp(secret.Metadata.Annotations[OwnerStamp], revision)),
		stampSource: intern(stamp(secret.Metadata.Annotations[SourceStamp], revision)),
		created:     secret.Metadata.CreationTimestamp.UnixMilli(),
		secret:      head.Name,
		uid:         head.UID,
		secretState: head.ResourceVersion,
	}
	return object, nil
}

// stamp reads "r<revision>-<value>". Helm copies a record's metadata forward, so a stamp counts only on the
// revision it was made for.
func stamp(text string, revision int) string {
	rest, ok := strings.CutPrefix(text, "r")
	if !ok {
		return ""
	}
	number, value, ok := strings.Cut(rest, "-")
	if !ok || number != strconv.Itoa(revision) {
		return ""
	}
	return value
}

// pending tells whether an action is, or was, under way on this revision.
func (r *record) pending() bool { return common.Status(r.status).IsPending() }

func (r *record) uninstalling() bool { return common.Status(r.status) == common.StatusUninstalling }

// over tells whether the release has no objects to look after.
func (r *record) over() bool { return common.Status(r.status) == common.StatusUninstalled }

// same compares what would be told to the brain.
func (r *record) same(other *record) bool {
	a, b := *r, *other
	a.secretState, b.secretState = "", ""
	return a == b
}

func (r *record) proto() *enginev1.Record {
	return &enginev1.Record{
		Namespace: r.release.namespace, Name: r.release.name, Revision: int32(r.revision), Status: r.status,
		StampDigest: r.stampDigest, StampOwner: r.stampOwner, StampSource: r.stampSource,
		CreatedUnixMs: r.created, Uid: r.uid,
	}
}

func intern(s string) string { return unique.Make(s).Value() }
