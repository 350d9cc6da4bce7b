package helm

import (
	"context"
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/kube"
	rspb "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/drift"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

// Compare tells in which fields objects differ from the stored manifest. What turns out to be as applied is
// remembered as such, so that nobody asks again before it is written again.
func Compare(ctx context.Context, c *cluster.Cluster, request *enginev1.CompareRequest) (*enginev1.CompareReply, error) {
	a := newRehearsal(ctx, c, request.GetNamespace(), request.GetName())
	stored, err := a.stored(int(request.GetRevision()))
	if err != nil {
		return nil, a.explain(err)
	}
	reply := &enginev1.CompareReply{}
	equal := map[inventory.Ref]drift.Trace{}
	objects := request.GetObjects()
	if len(objects) == 0 {
		objects = stored.all()
	}
	for _, wanted := range objects {
		ref := refOf(wanted)
		comparison := &enginev1.Comparison{Ref: wanted}
		if info := stored.objects[ref]; info != nil {
			trace, err := a.compare(info, stored, comparison)
			if err != nil {
				comparison.Fault = a.explain(err).Proto()
			} else if trace != nil {
				equal[ref] = *trace
			}
		}
		reply.Objects = append(reply.Objects, comparison)
	}
	if len(equal) > 0 {
		c.Inventories.Applied(request.GetNamespace(), request.GetName(), int(request.GetRevision()), equal)
	}
	return reply, nil
}

func newRehearsal(ctx context.Context, c *cluster.Cluster, namespace, name string) *run {
	a := &run{
		cluster: c, request: &enginev1.RunRequest{Namespace: namespace, Name: name}, waits: ctx, progress: &phases{},
		rehearsal: true,
	}
	a.records = newRecords(a)
	a.kube = newKubeClient(a)
	return a
}

// stored is what Helm's record says a release's objects are.
type stored struct {
	serverSide bool
	foreign    bool // somebody else deployed it; known to a repair only
	objects    map[inventory.Ref]*resource.Info
}

// stored builds the objects of a record the way Helm builds them for an apply, marks included.
func (a *run) stored(revision int) (*stored, error) {
	if a.request.GetName() == "" || a.request.GetNamespace() == "" {
		return nil, fault.New(enginev1.Fault_INVALID, "a release needs a name and a namespace")
	}
	rel, err := a.records.release(revision)
	if err != nil {
		return nil, err
	}
	a.kube.forgiveMissingKinds = true
	list, err := a.kube.build(withoutCRDs(rel.Manifest), true)
	if err != nil {
		return nil, err
	}
	out := &stored{
		serverSide: rel.ApplyMethod == string(rspb.ApplyMethodServerSideApply),
		objects:    make(map[inventory.Ref]*resource.Info, len(list)),
	}
	for _, info := range list {
		object, ok := info.Object.(*unstructured.Unstructured)
		if !ok || info.Name == "" {
			continue
		}
		a.mark(object)
		out.objects[infoRef(info)] = info
	}
	return out, nil
}

// all names every object of the record.
func (s *stored) all() []*enginev1.Ref {
	out := make([]*enginev1.Ref, 0, len(s.objects))
	for ref := range s.objects {
		out = append(out, ref.Proto())
	}
	return out
}

// compare fills in what is different about one object, or gives the trace of one that is as applied.
func (a *run) compare(info *resource.Info, stored *stored, out *enginev1.Comparison) (*drift.Trace, error) {
	live, err := a.live(info)
	if apierrors.IsNotFound(err) {
		out.Missing, out.Expires = true, expires(info.Object.(*unstructured.Unstructured))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	applied, err := a.apply(info, stored.serverSide)
	var swapped []drift.Swap
	if stored.serverSide && apierrors.IsInvalid(err) {
		applied, swapped, err = a.compareSwapped(info, err)
	}
	if err != nil {
		return nil, err
	}
	for _, one := range swapped {
		out.Differences = append(out.Differences, &enginev1.Difference{Path: one.Path.Pointer(), Manager: one.Manager})
	}
	owner := drift.Owners(live)
	for _, path := range drift.Paths(live.Object, applied.Object) {
		out.Differences = append(out.Differences, &enginev1.Difference{Path: path.Pointer(), Manager: owner(path)})
	}
	if slices.ContainsFunc(out.Differences, func(one *enginev1.Difference) bool { return one.Path == replicas }) {
		if out.Scaled, err = a.kube.scaled(live); err != nil {
			return nil, err
		}
	}
	trace := drift.OfObject(live)
	// Equal by chance is not as applied: the next change of that field would not take it from Helm.
	regained := stored.serverSide && trace.Own != drift.OfObject(applied).Own
	if len(out.Differences) > 0 || regained {
		return nil, nil
	}
	return &trace, nil
}

// apply applies one object with Helm's own code, and gives it as it is then.
func (a *run) apply(info *resource.Info, serverSide bool) (*unstructured.Unstructured, error) {
	// Helm writes the answer into what it is given, and an original must stay as it was stored.
	original, target := *info, *info
	original.Object = info.Object.DeepCopyObject()
	target.Object = info.Object.DeepCopyObject()
	_, err := a.kube.Client.Update(kube.ResourceList{&original}, kube.ResourceList{&target},
		kube.ClientUpdateOptionServerSideApply(serverSide, serverSide),
		kube.ClientUpdateOptionThreeWayMergeForUnstructured(!serverSide))
	if err != nil {
		return nil, err
	}
	applied, ok := target.Object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("unknown object %T", target.Object)
	}
	return applied, nil
}

func (a *run) live(info *resource.Info) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	return a.kube.objects(info).Get(ctx, info.Name, metav1.GetOptions{})
}

// expires tells whether an object is meant to go by itself.
func expires(object *unstructured.Unstructured) bool {
	_, timed, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "ttlSecondsAfterFinished")
	return timed && object.GetKind() == "Job"
}

// applied remembers what objects look like when they have just been applied.
func (a *run) applied(result *kube.Result) {
	if a.records.made == 0 || result == nil {
		return
	}
	traces := map[inventory.Ref]drift.Trace{}
	for _, list := range []kube.ResourceList{result.Created, result.Updated} {
		for _, info := range list {
			if object, ok := info.Object.(*unstructured.Unstructured); ok && object.GetResourceVersion() != "" {
				traces[infoRef(info)] = drift.OfObject(object)
			}
		}
	}
	if len(traces) > 0 {
		a.cluster.Inventories.Applied(a.request.GetNamespace(), a.request.GetName(), a.records.made, traces)
	}
}

func refOf(ref *enginev1.Ref) inventory.Ref {
	return inventory.NewRef(ref.GetApiVersion(), ref.GetKind(), ref.GetNamespace(), ref.GetName())
}

func infoRef(info *resource.Info) inventory.Ref {
	kind, namespace := info.Mapping.GroupVersionKind, info.Namespace
	if !info.Namespaced() {
		namespace = ""
	}
	return inventory.NewRef(kind.GroupVersion().String(), kind.Kind, namespace, info.Name)
}
