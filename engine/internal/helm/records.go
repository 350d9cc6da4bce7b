package helm

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/release/common"
	rspb "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

var secretsResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// records is Helm's storage for one action on one release: its release Secrets.
//
// Helm reads and decodes every revision several times per action. Here the revisions are listed once, by
// metadata, and only those whose content matters are fetched; the rest are stubs, good for counting and
// pruning. What this action writes is remembered, so that later questions cost nothing.
type records struct {
	driver.Driver // create, update and get of Secrets, through the stamping client

	run   *run
	known map[int]*record
	// listed says that known is complete; a write whose result is unknown clears it.
	listed bool
	stubs  map[*rspb.Release]bool
	made   int // the revision this action created; 0: none
	// beforeCreate may refuse the revision about to be recorded.
	beforeCreate func(*rspb.Release) error
	// conditional makes writes fail when someone else wrote since the record was read.
	conditional bool
}

// record is one revision: its Secret's metadata, and its content if that was read or written.
type record struct {
	revision int
	meta     metav1.ObjectMeta
	content  *rspb.Release
}

func newRecords(a *run) *records {
	r := &records{run: a, known: map[int]*record{}, stubs: map[*rspb.Release]bool{}}
	secrets := driver.NewSecrets(&stampingSecrets{a.cluster.Secrets(a.request.GetNamespace()), r})
	secrets.SetLogger(quiet)
	r.Driver = secrets
	return r
}

func (r *record) status() common.Status { return common.Status(r.meta.Labels["status"]) }

// recordName is the name of the Secret that holds a revision.
func recordName(name string, revision int) string {
	return fmt.Sprintf("%s.%s.v%d", storage.HelmStorageType, name, revision)
}

func (r *records) revisionOf(key string) (int, error) {
	prefix := storage.HelmStorageType + "." + r.run.request.GetName() + ".v"
	revision, err := strconv.Atoi(strings.TrimPrefix(key, prefix))
	if err != nil || !strings.HasPrefix(key, prefix) {
		return 0, driver.ErrInvalidKey
	}
	return revision, nil
}

// list learns which revisions there are, from metadata alone.
func (r *records) list() error {
	if r.listed {
		return nil
	}
	selector := labels.Set{"owner": "helm", "name": r.run.request.GetName()}.AsSelector().String()
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	found, err := r.run.cluster.Metadata().Resource(secretsResource).Namespace(r.run.request.GetNamespace()).
		List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return fmt.Errorf("cannot list the release records: %w", err)
	}
	old := r.known
	r.known = make(map[int]*record, len(found.Items))
	for _, item := range found.Items {
		revision, err := r.revisionOf(item.Name)
		if err != nil {
			continue
		}
		entry := &record{revision: revision, meta: item.ObjectMeta}
		if before := old[revision]; before != nil && before.meta.ResourceVersion == item.ResourceVersion {
			entry.content = before.content
		}
		r.known[revision] = entry
	}
	r.listed = true
	return nil
}

// Query answers from the one list. A question by status is about content, so its answers are decoded; of a whole
// history only the newest revision is.
func (r *records) Query(wanted map[string]string) ([]release.Releaser, error) {
	if wanted["name"] != r.run.request.GetName() {
		return nil, fmt.Errorf("storage of release %q was asked for %q", r.run.request.GetName(), wanted["name"])
	}
	if err := r.list(); err != nil {
		return nil, err
	}
	matching := r.matching(wanted["status"])
	if len(matching) == 0 {
		return nil, driver.ErrReleaseNotFound
	}
	out := make([]release.Releaser, 0, len(matching))
	for i, entry := range matching {
		if wanted["status"] == "" && i < len(matching)-1 && entry.content == nil {
			out = append(out, r.stub(entry))
			continue
		}
		rel, err := r.release(entry.revision)
		if errors.Is(err, driver.ErrReleaseNotFound) {
			continue // deleted since it was listed
		}
		if err != nil {
			return nil, err
		}
		out = append(out, rel)
	}
	return out, nil
}

// matching gives the revisions of that status, or all, oldest first.
func (r *records) matching(status string) []*record {
	var out []*record
	for _, entry := range r.known {
		if status == "" || string(entry.status()) == status {
			out = append(out, entry)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].revision < out[j].revision })
	return out
}

// stub has of a revision what its labels say. It must never be written back.
func (r *records) stub(entry *record) *rspb.Release {
	rel := &rspb.Release{
		Name:      r.run.request.GetName(),
		Namespace: r.run.request.GetNamespace(),
		Version:   entry.revision,
		Info:      &rspb.Info{Status: entry.status()},
	}
	r.stubs[rel] = true
	return rel
}

// newest gives the newest revision, or nil when there is none.
func (r *records) newest() (*record, error) {
	if err := r.list(); err != nil {
		return nil, err
	}
	if all := r.matching(""); len(all) > 0 {
		return all[len(all)-1], nil
	}
	return nil, nil
}

// release gives the content of a revision.
func (r *records) release(revision int) (*rspb.Release, error) {
	if entry := r.known[revision]; entry != nil && entry.content != nil {
		return entry.content, nil
	}
	found, err := r.Driver.Get(recordName(r.run.request.GetName(), revision))
	if err != nil {
		return nil, err
	}
	rel, ok := found.(*rspb.Release)
	if !ok {
		return nil, fmt.Errorf("revision %d has an unknown format", revision)
	}
	if rel.Info == nil {
		rel.Info = &rspb.Info{}
	}
	if entry := r.known[revision]; entry != nil {
		entry.content = rel
	}
	return rel, nil
}

// Get implements driver.Driver.
func (r *records) Get(key string) (release.Releaser, error) {
	revision, err := r.revisionOf(key)
	if err != nil {
		return nil, err
	}
	return r.release(revision)
}

// Create records the revision this action makes.
func (r *records) Create(key string, rls release.Releaser) error {
	rel, ok := rls.(*rspb.Release)
	if !ok {
		return fmt.Errorf("unknown release format %T", rls)
	}
	rel.Manifest = withoutCRDs(rel.Manifest)
	r.run.annotateChart(rel)
	if r.beforeCreate != nil {
		if err := r.beforeCreate(rel); err != nil {
			return err
		}
	}
	r.made = rel.Version
	if err := r.Driver.Create(key, rel); err != nil {
		r.made = 0
		if !errors.Is(err, driver.ErrReleaseExists) {
			r.listed = false
		}
		return err
	}
	r.known[rel.Version].content = rel
	refs := r.run.kube.targetRefs
	if refs == nil {
		refs = inventory.FromManifest(rel.Manifest, rel.Namespace, r.run.cluster.Mapper())
	}
	r.run.cluster.Inventories.Put(rel.Namespace, rel.Name, rel.Version, refs)
	r.run.progress.say(enginev1.Progress_APPLYING, "")
	return nil
}

// Update writes a revision anew.
func (r *records) Update(key string, rls release.Releaser) error {
	rel, ok := rls.(*rspb.Release)
	if !ok {
		return fmt.Errorf("unknown release format %T", rls)
	}
	if r.stubs[rel] {
		return fmt.Errorf("revision %d of %s was never read: refusing to overwrite it", rel.Version, rel.Name)
	}
	r.run.hooks.note(rel.Hooks)
	if err := r.Driver.Update(key, rel); err != nil {
		r.listed = false
		return err
	}
	r.known[rel.Version].content = rel
	return nil
}

// Delete removes a revision without reading it first, as Helm's own driver would.
func (r *records) Delete(key string) (release.Releaser, error) {
	if r.run.kube.stuck != nil {
		return nil, r.run.kube.stuck
	}
	revision, err := r.revisionOf(key)
	if err != nil {
		return nil, err
	}
	entry := r.known[revision]
	options := metav1.DeleteOptions{}
	if entry != nil && r.conditional {
		options.Preconditions = &metav1.Preconditions{UID: &entry.meta.UID, ResourceVersion: &entry.meta.ResourceVersion}
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	err = r.run.cluster.Secrets(r.run.request.GetNamespace()).Delete(ctx, key, options)
	if err != nil && !apierrors.IsNotFound(err) {
		r.listed = false
		return nil, fmt.Errorf("cannot delete revision %d: %w", revision, err)
	}
	delete(r.known, revision)
	r.run.cluster.Inventories.Forget(r.run.request.GetNamespace(), r.run.request.GetName(), revision)
	if entry == nil {
		return nil, driver.ErrReleaseNotFound
	}
	if entry.content != nil {
		return entry.content, nil
	}
	return r.stub(entry), nil
}

// settle marks the revision this action made as failed if Helm left it pending, as it does when a rollback's
// hook fails.
func (r *records) settle(failure *fault.Error) error {
	entry := r.known[r.made]
	if r.made == 0 || entry == nil || entry.content == nil || !entry.status().IsPending() {
		return nil
	}
	description := "ended without a result"
	if failure != nil {
		description = failure.Message
	}
	entry.content.SetStatus(common.StatusFailed, description)
	return r.Update(recordName(entry.content.Name, entry.revision), entry.content)
}
