package helm

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"time"

	"helm.sh/helm/v4/pkg/action"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/storage"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// requestTimeout bounds each of Helm's own requests: an API server that hangs must not hold an action for ever,
// since an action cannot be cancelled while it writes.
const requestTimeout = 60 * time.Second

// configuration is made anew for each action: Helm writes into it.
func (a *run) configuration() (*action.Configuration, error) {
	// Preset, because Helm would drop the discovery cache to learn them.
	capabilities, err := a.cluster.Capabilities(context.Background())
	if err != nil {
		return nil, err
	}
	configuration := action.NewConfiguration(action.ConfigurationSetLogger(quiet))
	configuration.RESTClientGetter = a.getter()
	configuration.KubeClient = a.kube
	configuration.Capabilities = capabilities
	configuration.Releases = storage.Init(a.records)
	configuration.Releases.SetLogger(quiet)
	configuration.Releases.MaxHistory = int(a.request.GetMaxHistory())
	configuration.HookOutputFunc = func(_, _, _ string) io.Writer { return io.Discard }
	return configuration, nil
}

func (a *run) getter() genericclioptions.RESTClientGetter {
	return boundedGetter{a.cluster.Getter(a.request.GetNamespace())}
}

// boundedGetter gives clients whose requests end. Watches do not come through here.
type boundedGetter struct {
	genericclioptions.RESTClientGetter
}

func (g boundedGetter) ToRESTConfig() (*rest.Config, error) {
	config, err := g.RESTClientGetter.ToRESTConfig()
	if err == nil {
		config.Timeout = requestTimeout
	}
	return config, err
}

// chartAndValues are this action's own: Helm changes both.
func (a *run) chartAndValues() (*chartv2.Chart, map[string]any, error) {
	loaded, err := a.charts.Load(a.request.GetChartDigest())
	if err != nil {
		return nil, nil, err
	}
	values, err := decodeValues(a.request.GetValues())
	return loaded, values, err
}

// decodeValues reads numbers as Helm's own values files are read, so that templates print them the same way.
func decodeValues(encoded []byte) (map[string]any, error) {
	values := map[string]any{}
	if len(encoded) == 0 {
		return values, nil
	}
	if err := json.Unmarshal(encoded, &values); err != nil {
		return nil, fault.New(enginev1.Fault_VALUES, "the values are not a JSON object")
	}
	if values == nil {
		values = map[string]any{}
	}
	return values, nil
}

// quiet passes Helm's own words on at debug level only: its warnings repeat errors that are returned as well.
var quiet slog.Handler = debugOnly{}

type debugOnly struct{}

func (debugOnly) Enabled(ctx context.Context, _ slog.Level) bool {
	return slog.Default().Enabled(ctx, slog.LevelDebug)
}

func (debugOnly) Handle(ctx context.Context, record slog.Record) error {
	record.Level = slog.LevelDebug
	return slog.Default().Handler().Handle(ctx, record)
}

func (d debugOnly) WithAttrs([]slog.Attr) slog.Handler { return d }
func (d debugOnly) WithGroup(string) slog.Handler      { return d }
