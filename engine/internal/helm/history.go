package helm

import (
	"context"
	"encoding/json"
	"errors"

	"helm.sh/helm/v4/pkg/storage/driver"

	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// History gives the decoded records of a release, oldest first; of one revision if the request names one.
func History(ctx context.Context, c *cluster.Cluster, request *enginev1.HistoryRequest) ([]*enginev1.Record, error) {
	if request.GetName() == "" || request.GetNamespace() == "" {
		return nil, fault.New(enginev1.Fault_INVALID, "a release needs a name and a namespace")
	}
	a := newRun(ctx, c, &enginev1.RunRequest{Namespace: request.GetNamespace(), Name: request.GetName()}, nil, nil)
	if err := a.records.list(); err != nil {
		return nil, a.explain(err)
	}
	var out []*enginev1.Record
	for _, entry := range a.records.matching("") {
		if wanted := int(request.GetRevision()); wanted != 0 && wanted != entry.revision {
			continue
		}
		rel, err := a.records.release(entry.revision)
		if errors.Is(err, driver.ErrReleaseNotFound) {
			continue // pruned since it was listed
		}
		if err != nil {
			return nil, a.explain(err)
		}
		record := a.records.known[entry.revision].proto(request.GetNamespace(), request.GetName())
		if request.GetWithConfig() {
			if record.Config, err = json.Marshal(rel.Config); err != nil {
				return nil, a.explain(err)
			}
		}
		out = append(out, record)
		// One decoded manifest at a time is enough in memory.
		a.records.known[entry.revision].content = nil
	}
	return out, nil
}
