package helm

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// Annotations on a release Secret that say which request made that revision, and whose it was. They carry the
// revision, because Helm copies what it finds on one revision to the next: a stamp of another revision is void.
const (
	digestAnnotation = "pilothouse.dev/digest"
	ownerAnnotation  = "pilothouse.dev/owner"
	sourceAnnotation = "pilothouse.dev/source"
	ourAnnotations   = "pilothouse.dev/"
)

// stampingSecrets writes release Secrets with stamps, and notes what was read and written. Helm's update is a
// PUT from scratch: whatever is not put on again is lost.
type stampingSecrets struct {
	corev1client.SecretInterface
	records *records
}

func (s *stampingSecrets) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	secret, err := s.SecretInterface.Get(ctx, name, options)
	if err == nil {
		s.note(secret)
	}
	return secret, err
}

func (s *stampingSecrets) Create(ctx context.Context, secret *corev1.Secret, options metav1.CreateOptions) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s.stamp(secret)
	written, err := s.SecretInterface.Create(ctx, secret, options)
	if err == nil {
		s.note(written)
	}
	return written, err
}

func (s *stampingSecrets) Update(ctx context.Context, secret *corev1.Secret, options metav1.UpdateOptions) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s.stamp(secret)
	written, err := s.SecretInterface.Update(ctx, secret, options)
	if err == nil {
		s.note(written)
	}
	return written, err
}

// stamp puts this request's stamps on the revision it makes, and on any other those it had.
func (s *stampingSecrets) stamp(secret *corev1.Secret) {
	revision, err := s.records.revisionOf(secret.Name)
	if err != nil {
		return
	}
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	if revision == s.records.made {
		request := s.records.run.request
		for annotation, value := range map[string]string{
			digestAnnotation: request.GetStampDigest(), ownerAnnotation: request.GetStampOwner(),
			sourceAnnotation: request.GetStampSource(),
		} {
			if value != "" {
				secret.Annotations[annotation] = fmt.Sprintf("r%d-%s", revision, value)
			}
		}
		return
	}
	if entry := s.records.known[revision]; entry != nil {
		for annotation, value := range entry.meta.Annotations {
			if strings.HasPrefix(annotation, ourAnnotations) {
				secret.Annotations[annotation] = value
			}
		}
		if s.records.conditional {
			secret.ResourceVersion = entry.meta.ResourceVersion
		}
	}
	s.claimUninstall(secret, revision)
}

// claimUninstall says whose uninstall has begun, whoever made the revision. Without it a record that another client
// made, and an uninstall of ours left behind, would look like an uninstall of that client.
func (s *stampingSecrets) claimUninstall(secret *corev1.Secret, revision int) {
	owner := s.records.run.request.GetStampOwner()
	if owner != "" && common.Status(secret.Labels["status"]) == common.StatusUninstalling {
		secret.Annotations[ownerAnnotation] = fmt.Sprintf("r%d-%s", revision, owner)
	}
}

// note remembers a Secret's metadata; its content may be large and is Helm's.
func (s *stampingSecrets) note(secret *corev1.Secret) {
	revision, err := s.records.revisionOf(secret.Name)
	if err != nil {
		return
	}
	entry := s.records.known[revision]
	if entry == nil {
		entry = &record{revision: revision}
		s.records.known[revision] = entry
	}
	entry.meta = secret.ObjectMeta
	entry.meta.ManagedFields = nil
}

// stampOf reads a stamp if it belongs to that revision.
func stampOf(annotations map[string]string, annotation string, revision int) string {
	value, found := strings.CutPrefix(annotations[annotation], fmt.Sprintf("r%d-", revision))
	if !found {
		return ""
	}
	return value
}

// proto tells a record as the contract does.
func (r *record) proto(namespace, name string) *enginev1.Record {
	out := &enginev1.Record{
		Namespace:     namespace,
		Name:          name,
		Revision:      int32(r.revision), //nolint:gosec // Helm counts revisions from 1
		Status:        r.meta.Labels["status"],
		StampDigest:   stampOf(r.meta.Annotations, digestAnnotation, r.revision),
		StampOwner:    stampOf(r.meta.Annotations, ownerAnnotation, r.revision),
		StampSource:   stampOf(r.meta.Annotations, sourceAnnotation, r.revision),
		CreatedUnixMs: milliseconds(r.meta.CreationTimestamp.Time),
		Uid:           string(r.meta.UID),
	}
	if version, err := strconv.Atoi(r.meta.Labels["version"]); err == nil && version != r.revision {
		// The label is what a watch sees: a stamp on a Secret whose name disagrees counts for nothing.
		out.StampDigest, out.StampOwner, out.StampSource = "", "", ""
	}
	rel := r.content
	if rel == nil {
		return out
	}
	if rel.Chart != nil && rel.Chart.Metadata != nil {
		out.ChartName = rel.Chart.Metadata.Name
		out.ChartVersion = rel.Chart.Metadata.Version
		out.AppVersion = rel.Chart.Metadata.AppVersion
	}
	if rel.Info != nil {
		out.Description = redact(rel.Info.Description)
		out.DeployedUnixMs = milliseconds(rel.Info.LastDeployed)
	}
	return out
}

func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
