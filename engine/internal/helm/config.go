package helm

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
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
	return boundedGetter{a.cluster.Getter(a.request.GetNamespace()), a.rehearsal}
}

// boundedGetter gives clients whose requests end. Watches do not come through here.
type boundedGetter struct {
	genericclioptions.RESTClientGetter
	rehearsal bool // every write is a dry run
}

func (g boundedGetter) ToRESTConfig() (*rest.Config, error) {
	config, err := g.RESTClientGetter.ToRESTConfig()
	if err == nil {
		config.Timeout = requestTimeout
		if g.rehearsal {
			config.Wrap(rehearse)
		}
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

// decodeValues reads what package compose wrote: a number without fraction or exponent is an int64, as `--set`
// makes it, any other a float64, as a values file makes it. Templates print a large one differently.
func decodeValues(encoded []byte) (map[string]any, error) {
	values := map[string]any{}
	if len(encoded) == 0 {
		return values, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if err := decoder.Decode(&values); err != nil {
		return nil, fault.New(enginev1.Fault_VALUES, "the values are not a JSON object")
	}
	if values == nil {
		return map[string]any{}, nil
	}
	for key, value := range values {
		values[key] = numbers(value)
	}
	return values, nil
}

// numbers replaces json.Number, which Helm's templates would take for a string.
func numbers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			value[key] = numbers(inner)
		}
	case []any:
		for i, inner := range value {
			value[i] = numbers(inner)
		}
	case json.Number:
		if !strings.ContainsAny(value.String(), ".eE") {
			if whole, err := value.Int64(); err == nil {
				return whole
			}
		}
		if float, err := value.Float64(); err == nil {
			return float
		}
		return value.String()
	}
	return value
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
