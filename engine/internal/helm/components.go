package helm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// takeComponents cuts the components out of a kustomization: kustomize knows them as paths only, here they stand where
// the paths would.
func takeComponents(encoded []byte) (rest []byte, components []json.RawMessage, err error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(encoded, &fields) != nil {
		return encoded, nil, nil // reading the whole says what is wrong
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !strings.EqualFold(name, "components") {
			continue
		}
		var found []json.RawMessage
		if err := json.Unmarshal(fields[name], &found); err != nil {
			return nil, nil, kustomizationFault("components must be a list")
		}
		components = append(components, found...)
		delete(fields, name)
	}
	rest, err = json.Marshal(fields)
	return rest, components, err
}

// readComponent checks a component by the rules of the kustomization itself.
func readComponent(encoded json.RawMessage) (types.Kustomization, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(encoded), []byte("{")) {
		return types.Kustomization{}, kustomizationFault("it must be a Component, written inline: there are no files, and nothing remote is fetched")
	}
	return readOne(encoded, types.ComponentKind, types.ComponentVersion)
}

// writeComponents puts components where a kustomization can find them, and returns their paths.
func writeComponents(files filesys.FileSystem, components []types.Kustomization) ([]string, error) {
	var paths []string
	for i, one := range components {
		one.TypeMeta = types.TypeMeta{APIVersion: types.ComponentVersion, Kind: types.ComponentKind}
		encoded, err := yaml.Marshal(one)
		if err != nil {
			return nil, fmt.Errorf("components[%d] cannot be written as YAML", i)
		}
		path := fmt.Sprintf("component-%d", i)
		if err := files.WriteFile(path+"/kustomization.yaml", encoded); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
