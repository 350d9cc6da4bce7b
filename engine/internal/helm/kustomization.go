package helm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const (
	unusable   = "the kustomization cannot be used: "
	isIdentity = "names and namespaces belong to Helm's identity of the release, and Helm would lose the objects it made"
	isOutside  = "it leads out of the release, and what the chart renders is the only resource"
	isCode     = "it brings other programs or files into the rendering"
	isOrder    = "Helm decides the order of objects"
)

// taken are the fields of a kustomization that change what the chart rendered and read nothing else.
var taken = map[string]bool{
	"metadata": true, "patches": true, "images": true, "replicas": true, "replacements": true,
	"labels": true, "commonLabels": true, "commonAnnotations": true,
	"configMapGenerator": true, "secretGenerator": true, "generatorOptions": true,
}

// refusals say why a field is not taken; one that a later kustomize brings is not taken either.
var refusals = map[string]string{
	"namePrefix": isIdentity, "nameSuffix": isIdentity, "namespace": isIdentity,
	"resources": isOutside, "bases": isOutside, "components": isOutside, "crds": isOutside, "openapi": isOutside,
	"configurations": isOutside, "buildMetadata": isOutside,
	"helmCharts": isCode, "helmGlobals": isCode, "helmChartInflationGenerator": isCode,
	"generators": isCode, "transformers": isCode, "validators": isCode,
	"sortOptions":           isOrder,
	"patchesStrategicMerge": "use patches instead", "patchesJson6902": "use patches instead",
	"imageTags": "use images instead", "vars": "use replacements instead",
}

// kustomizer applies a kustomization that was checked, with its components.
type kustomizer struct {
	types.Kustomization

	components []types.Kustomization
}

// Run implements postrenderer.PostRenderer.
func (k kustomizer) Run(manifests *bytes.Buffer) (*bytes.Buffer, error) {
	out, err := kustomize(k.Kustomization, manifests, k.components...)
	if err != nil {
		return nil, fault.New(enginev1.Fault_RENDER, "the kustomization cannot be applied: %s", err)
	}
	return out, nil
}

// readKustomization takes a kustomization that needs nothing but the manifest, and refuses any other.
func readKustomization(encoded []byte) (kustomizer, error) {
	encoded, inline, err := takeComponents(encoded)
	if err != nil {
		return kustomizer{}, err
	}
	read, err := readOne(encoded, types.KustomizationKind, types.KustomizationVersion)
	if err != nil {
		return kustomizer{}, err
	}
	made := kustomizer{Kustomization: read}
	for i, one := range inline {
		component, err := readComponent(one)
		if err != nil {
			return kustomizer{}, kustomizationFault("components[%d]: %s", i, strings.TrimPrefix(err.Error(), unusable))
		}
		made.components = append(made.components, component)
	}
	return made, nil
}

func readOne(encoded []byte, kind, version string) (types.Kustomization, error) {
	var read types.Kustomization
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&read); err != nil {
		return read, kustomizationFault("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if problems := read.EnforceFields(); len(problems) > 0 || (read.Kind != "" && read.Kind != kind) {
		return read, kustomizationFault("it must be a %s of %s", kind, version)
	}
	if err := checkFields(&read); err != nil {
		return read, err
	}
	if err := checkPaths(&read); err != nil {
		return read, err
	}
	// commonLabels become labels, which kustomize does as well, but with a warning on the standard error.
	if err := read.FixKustomizationPreMarshalling(filesys.MakeFsInMemory()); err != nil {
		return read, kustomizationFault("%s", err)
	}
	return read, nil
}

// checkFields looks at what is set rather than at what was written: kustomize reads names in any case.
func checkFields(read *types.Kustomization) error {
	value := reflect.ValueOf(read).Elem()
	for i := range value.NumField() {
		name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		if name == "" || taken[name] || value.Field(i).IsZero() {
			continue
		}
		why := refusals[name]
		if why == "" {
			why = "it is not supported here"
		}
		return kustomizationFault("%s is refused: %s", name, why)
	}
	return nil
}

// checkPaths refuses what reads files in the fields that are taken.
func checkPaths(read *types.Kustomization) error {
	for i, patch := range read.Patches {
		if patch.Path != "" || patch.Patch == "" {
			return kustomizationFault("patches[%d] must be inline: there are no files", i)
		}
	}
	for i, replacement := range read.Replacements {
		if replacement.Path != "" {
			return kustomizationFault("replacements[%d] must be inline: there are no files", i)
		}
	}
	for i, generator := range read.ConfigMapGenerator {
		if err := checkGenerator(fmt.Sprintf("configMapGenerator[%d]", i), &generator.GeneratorArgs); err != nil {
			return err
		}
	}
	for i, generator := range read.SecretGenerator {
		if err := checkGenerator(fmt.Sprintf("secretGenerator[%d]", i), &generator.GeneratorArgs); err != nil {
			return err
		}
	}
	return nil
}

func checkGenerator(where string, generator *types.GeneratorArgs) error {
	switch {
	case len(generator.FileSources) > 0 || len(generator.EnvSources) > 0 || generator.EnvSource != "":
		return kustomizationFault("%s may have literals only: there are no files", where)
	case generator.Behavior != "" && generator.Behavior != "create":
		// Both give the chart's own object another name, with the hash of its content.
		return kustomizationFault("%s may only create: %s", where, isIdentity)
	}
	return nil
}

func kustomizationFault(format string, args ...any) error {
	return fault.New(enginev1.Fault_INVALID, unusable+format, args...)
}
