package helm

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const manifestFile = "manifests.yaml"

// oneAtATime because kustomize keeps its schema in variables of the program, and each run sets them anew.
var oneAtATime sync.Mutex

// kustomize applies a kustomization to a manifest, in memory: nothing is read from disk or network. Its errors
// repeat nothing of a patch, which may come from a Secret.
func kustomize(kustomization types.Kustomization, manifests *bytes.Buffer, components ...types.Kustomization) (out *bytes.Buffer, err error) {
	kustomization.TypeMeta = types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind}
	kustomization.Resources = []string{manifestFile}
	files := filesys.MakeFsInMemory()
	if kustomization.Components, err = writeComponents(files, components); err != nil {
		return nil, err
	}
	encoded, err := yaml.Marshal(kustomization)
	if err != nil {
		return nil, errors.New("it cannot be written as YAML")
	}
	for name, content := range map[string][]byte{"kustomization.yaml": encoded, manifestFile: manifests.Bytes()} {
		if err := files.WriteFile(name, content); err != nil {
			return nil, err
		}
	}
	oneAtATime.Lock()
	defer oneAtATime.Unlock()
	defer func() {
		if recover() != nil { // as it does on objects of unexpected shape
			out, err = nil, errors.New("kustomize panicked")
		}
	}()
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	options.Reorder = krusty.ReorderOptionNone
	made, err := krusty.MakeKustomizer(options).Run(files, ".")
	if err != nil {
		return nil, kustomizeError(err.Error())
	}
	changed, err := made.AsYaml()
	if err != nil {
		return nil, kustomizeError(err.Error())
	}
	return bytes.NewBuffer(changed), nil
}

// tellings are what kustomize says that helps and names only objects and paths.
var tellings = []*regexp.Regexp{
	regexp.MustCompile(`no resource matches strategic merge patch "[^"]*"`),
	regexp.MustCompile(`\w+ operation does not apply: (?:doc is missing (?:path|key)|error in (?:add|remove|replace) for path): ["']?/[^\s"':]*["']?`),
	regexp.MustCompile(`testing path \S+ failed|testing value \S+ failed`),
	regexp.MustCompile(`may not add resource with an already registered id: \S+`),
	regexp.MustCompile(`unable to parse SM or JSON patch`),
	regexp.MustCompile(`illegally qualifies as both an SM and JSON patch`),
	regexp.MustCompile(`must specify a target for JSON patch`),
	regexp.MustCompile(`(?:nothing selected by|multiple matches for|unable to find field|unable to find or create field) [\w"./~\[\]-]+`),
}

// quotation is where kustomize begins to repeat what it was given.
var quotation = regexp.MustCompile("[`\"'\\[{\n]")

func kustomizeError(message string) error {
	for _, telling := range tellings {
		if found := telling.FindString(message); found != "" {
			return errors.New(oneLine(found))
		}
	}
	if at := quotation.FindStringIndex(message); at != nil {
		message = message[:at[0]]
	}
	message = strings.TrimRight(oneLine(message), ": ")
	if message == "" {
		message = "kustomize refused"
	}
	return errors.New(message)
}
