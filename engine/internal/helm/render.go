package helm

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"sort"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pilothouse-dev/pilothouse/engine/internal/chart"
	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

const notesFile = "NOTES.txt"

// Render renders a chart as an install or upgrade would, and writes nothing. It goes to the template engine
// directly: Helm's own dry run builds the objects, and so needs every CRD of the chart in the cluster. Without a
// cluster, the capabilities are Helm's defaults and `lookup` finds nothing.
func Render(ctx context.Context, c *cluster.Cluster, charts *chart.Store, request *enginev1.RenderRequest) (*enginev1.RenderReply, error) {
	a := &run{charts: charts, request: &enginev1.RunRequest{
		Name: request.GetName(), Namespace: request.GetNamespace(),
		ChartDigest: request.GetChartDigest(), Values: request.GetValues(),
	}}
	loaded, values, err := a.chartAndValues()
	if err != nil {
		return nil, err
	}
	reply, err := render(ctx, c, loaded, values, request)
	if err != nil {
		return nil, a.explain(err)
	}
	return reply, nil
}

func render(ctx context.Context, c *cluster.Cluster, loaded *chartv2.Chart, values map[string]any, request *enginev1.RenderRequest) (*enginev1.RenderReply, error) {
	if err := chartutil.ProcessDependencies(loaded, values); err != nil {
		return nil, err
	}
	capabilities := common.DefaultCapabilities.Copy()
	templates := engine.Engine{}
	var mapper meta.RESTMapper
	if c != nil {
		var err error
		if capabilities, err = c.Capabilities(ctx); err != nil {
			return nil, err
		}
		templates = engine.New(c.Config())
		mapper = c.Mapper()
	}
	if wants := loaded.Metadata.KubeVersion; wants != "" && !chartutil.IsCompatibleRange(wants, capabilities.KubeVersion.String()) {
		return nil, fmt.Errorf("chart requires kubeVersion: %s which is incompatible with Kubernetes %s", wants, capabilities.KubeVersion.Version)
	}
	revision := max(int(request.GetRevision()), 1)
	options := common.ReleaseOptions{
		Name: request.GetName(), Namespace: request.GetNamespace(), Revision: revision,
		IsInstall: !request.GetIsUpgrade(), IsUpgrade: request.GetIsUpgrade(),
	}
	top, err := util.ToRenderValues(loaded, values, options, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := templates.RenderWithContext(ctx, loaded, top)
	if err != nil {
		return nil, err
	}
	reply := &enginev1.RenderReply{Notes: takeNotes(loaded, files)}
	manifest, err := sortFiles(files, request.GetPatches(), reply)
	if err != nil {
		return nil, err
	}
	for _, crd := range loaded.CRDObjects() {
		reply.Crds = append(reply.Crds, crdDocuments(string(crd.File.Data))...)
	}
	reply.Crds = append(reply.Crds, crdDocuments(manifest)...)
	for _, hook := range reply.GetHooks() {
		reply.Crds = append(reply.Crds, crdDocuments(hook)...)
	}
	reply.Manifest = withoutCRDs(manifest)
	reply.Inventory = inventory.Protos(inventory.FromManifest(reply.GetManifest(), request.GetNamespace(), mapper))
	return reply, nil
}

// takeNotes removes every NOTES.txt from the files and gives the chart's own.
func takeNotes(loaded *chartv2.Chart, files map[string]string) string {
	own := files[path.Join(loaded.Name(), "templates", notesFile)]
	for name := range files {
		if strings.HasSuffix(name, notesFile) {
			delete(files, name)
		}
	}
	return own
}

// sortFiles puts hooks into the reply and gives the manifest, in Helm's order, patched.
func sortFiles(files map[string]string, patches [][]byte, reply *enginev1.RenderReply) (string, error) {
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return "", err
	}
	sort.SliceStable(hooks, func(i, j int) bool { return hooks[i].Weight < hooks[j].Weight })
	for _, hook := range hooks {
		reply.Hooks = append(reply.Hooks, hook.Manifest)
	}
	var out bytes.Buffer
	for _, m := range manifests {
		fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", m.Name, m.Content)
	}
	if len(patches) == 0 || out.Len() == 0 {
		return out.String(), nil
	}
	patched, err := patcher(patches).Run(&out)
	if err != nil {
		return "", err
	}
	return patched.String(), nil
}
