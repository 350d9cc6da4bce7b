package compose

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// patchDocument is how patches are written, and how package helm takes them.
type patchDocument struct {
	Patches []types.Patch `json:"patches"`
}

// Patches reads documents of the form `{patches: [...]}`. It gives one for each that has any, and the sum over all
// patches as provider-helm keeps it in status.patchesSha: another sum would make every release with patches an
// upgrade when it moves over, or back.
func Patches(documents []*enginev1.ComposeRequest_Document) (sum string, patches [][]byte, err error) {
	var all []types.Patch
	for _, document := range documents {
		read, err := readPatches(document)
		if err != nil {
			return "", nil, err
		}
		if len(read.Patches) == 0 {
			continue
		}
		encoded, err := json.Marshal(read)
		if err != nil {
			return "", nil, fault.New(enginev1.Fault_INVALID, "%s: cannot be written as JSON", document.GetOrigin())
		}
		all = append(all, read.Patches...)
		patches = append(patches, encoded)
	}
	if len(all) == 0 {
		return "", nil, nil
	}
	encoded, err := json.Marshal(all)
	if err != nil {
		return "", nil, fault.New(enginev1.Fault_INVALID, "the patches cannot be written as JSON")
	}
	digest := sha256.Sum256(encoded)
	return hex.EncodeToString(digest[:]), patches, nil
}

func readPatches(document *enginev1.ComposeRequest_Document) (patchDocument, error) {
	var read patchDocument
	if err := yaml.Unmarshal([]byte(document.GetText()), &read); err != nil {
		if given, field, ok := wrongType(err); ok && field != "" {
			return read, refuse(document.GetOrigin(), fmt.Sprintf("%s cannot be %s", field, given))
		}
		return read, refuse(document.GetOrigin(), whyNotYAML(document.GetText(), err))
	}
	for i, patch := range read.Patches {
		switch {
		case patch.Path != "":
			return read, refuse(document.GetOrigin(), fmt.Sprintf("patches[%d] must be inline: there is no file for its path", i))
		case patch.Patch == "":
			return read, refuse(document.GetOrigin(), fmt.Sprintf("patches[%d] has no patch", i))
		}
	}
	return read, nil
}
