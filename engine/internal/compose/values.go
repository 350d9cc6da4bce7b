package compose

import (
	"bytes"
	"encoding/json"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// Values merges documents in order, as `helm -f` does, then applies assignments, as `--set` does, and gives the
// result as a JSON object.
func Values(documents []*enginev1.ComposeRequest_Document, assignments []*enginev1.ComposeRequest_Assignment) ([]byte, error) {
	values := map[string]any{}
	for _, document := range documents {
		read, err := readValues(document.GetText())
		if err != nil {
			return nil, refuse(document.GetOrigin(), whyNotYAML(document.GetText(), err))
		}
		values = loader.MergeMaps(values, read)
	}
	for _, assignment := range assignments {
		if assignment.GetName() == "" {
			return nil, refuse(assignment.GetOrigin(), "it has no name")
		}
		if err := strvals.ParseInto(assignment.GetName()+"="+assignment.GetValue(), values); err != nil {
			return nil, refuse(assignment.GetOrigin(), whyNotAssignment(err))
		}
	}
	encoded, err := json.Marshal(spelled(values))
	if err != nil {
		return nil, fault.New(enginev1.Fault_INVALID, "the values cannot be written as JSON")
	}
	return encoded, nil
}

// readValues leaves a text to Helm's loader, which takes JSON for YAML, merges several documents, and reads nothing
// as {}. Not all JSON is YAML, though: an escaped emoji is two halves, and a key may be long.
func readValues(text string) (map[string]any, error) {
	read, err := loader.LoadValues(strings.NewReader(text))
	if err == nil {
		return read, nil
	}
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) == nil {
		return object, nil
	}
	return nil, err
}

// spelled keeps apart what JSON does not: Helm reads every number of a document as a float64 and every whole
// number of `--set` as an int64, and templates print a large one differently (1e+06, 1000000). So a float is
// always written with a fraction or an exponent, and package helm reads a number without them as an int64.
func spelled(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, inner := range value {
			out[key] = spelled(inner)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, inner := range value {
			out[i] = spelled(inner)
		}
		return out
	case float64:
		text, err := json.Marshal(value)
		if err != nil || bytes.ContainsAny(text, ".e") {
			return value
		}
		return json.Number(string(text) + ".0")
	}
	return value
}

func refuse(origin, why string) *fault.Error {
	return fault.New(enginev1.Fault_INVALID, "%s: %s", origin, why)
}
