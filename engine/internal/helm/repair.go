package helm

import (
	"context"

	"helm.sh/helm/v4/pkg/release/common"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/drift"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

// Repair applies objects of the deployed revision again: no render, no hook, no new revision.
func (r *Runner) Repair(ctx context.Context, c *cluster.Cluster, request *enginev1.RepairRequest) (*enginev1.RepairReply, error) {
	key := claim{c.Server, request.GetNamespace(), request.GetName()}
	if !r.take(ctx, key) {
		return nil, fault.New(enginev1.Fault_BUSY, "another action on release %s/%s is under way", key.namespace, key.name)
	}
	defer r.free(key)
	a := newRun(ctx, c, &enginev1.RunRequest{Namespace: key.namespace, Name: key.name}, nil, nil)
	stored, err := a.deployed(int(request.GetRevision()))
	if err != nil {
		return nil, a.explain(err)
	}
	reply := &enginev1.RepairReply{}
	traces := map[inventory.Ref]drift.Trace{}
	for _, part := range request.GetObjects() {
		ref := refOf(part.GetRef())
		repaired := &enginev1.RepairReply_Repaired{Ref: part.GetRef()}
		if info := stored.objects[ref]; info != nil {
			applied, err := a.repair(info, part.GetLeave(), stored)
			switch {
			case err != nil:
				repaired.Fault = a.explain(err).Proto()
			case len(part.GetLeave()) == 0: // what was left may still be compared
				traces[ref] = drift.OfObject(applied)
			}
		}
		reply.Objects = append(reply.Objects, repaired)
	}
	if len(traces) > 0 {
		c.Inventories.Applied(key.namespace, key.name, int(request.GetRevision()), traces)
	}
	return reply, nil
}

// deployed gives what a revision says, if it still is what is deployed.
func (a *run) deployed(revision int) (*stored, error) {
	newest, err := a.records.newest()
	if err != nil {
		return nil, err
	}
	if newest == nil || newest.revision != revision || newest.status() != common.StatusDeployed {
		return nil, fault.New(enginev1.Fault_CONFLICT, "revision %d of release %s/%s is not the deployed one any more",
			revision, a.request.GetNamespace(), a.request.GetName())
	}
	out, err := a.stored(revision)
	if err != nil {
		return nil, err
	}
	out.foreign, err = a.records.foreign()
	return out, err
}

// repair applies one object, except for the places that are to stay as they are.
func (a *run) repair(info *resource.Info, leave []string, stored *stored) (*unstructured.Unstructured, error) {
	serverSide := stored.serverSide
	if serverSide && stored.foreign {
		if err := a.inherit(info); err != nil {
			return nil, err
		}
	}
	if len(leave) > 0 {
		live, err := a.live(info)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		object := info.Object.(*unstructured.Unstructured)
		if live != nil && serverSide {
			leave = leaveSwapped(object, live, leave)
		}
		for _, pointer := range leave {
			if live != nil && !drift.Without(object.Object, live.Object, pointer) {
				return nil, fault.New(enginev1.Fault_INVALID, "%s of %s %s cannot be left as it is while the rest is repaired",
					pointer, object.GetKind(), object.GetName())
			}
		}
	}
	applied, err := a.apply(info, serverSide)
	if serverSide && apierrors.IsInvalid(err) {
		return a.repairSwapped(info, err)
	}
	return applied, err
}
