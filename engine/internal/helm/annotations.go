package helm

import (
	"maps"

	rspb "helm.sh/helm/v4/pkg/release/v1"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// annotateChart puts the request's chart annotations into the record about to be made. By now the templates have
// been rendered, so none of them can tell; a rollback records the chart of an old revision, which stays as it is.
func (a *run) annotateChart(rel *rspb.Release) {
	switch a.request.GetAction() {
	case enginev1.RunRequest_INSTALL, enginev1.RunRequest_UPGRADE:
	default:
		return
	}
	asked := a.request.GetChartAnnotations()
	if len(asked) == 0 || rel.Chart == nil || rel.Chart.Metadata == nil {
		return
	}
	merged := make(map[string]string, len(rel.Chart.Metadata.Annotations)+len(asked))
	maps.Copy(merged, rel.Chart.Metadata.Annotations)
	maps.Copy(merged, asked)
	rel.Chart.Metadata.Annotations = merged
}
