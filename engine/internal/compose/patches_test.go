package compose

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

const (
	twoPatches = `patches:
- patch: |-
    - op: replace
      path: /data/a
      value: <b> & c
  target: {kind: ConfigMap, name: app, version: v1, labelSelector: "app=web"}
- patch: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: app}, spec: {replicas: 2}}"
  options: {allowNameChange: true}
`
	onePatch = `{"patches": [{"patch": "[]", "target": {"kind": "Service"}}]}`

	// Computed once from the patches above; what provider-helm wrote into status must stay what we compute.
	golden = "8a871f12be082013da23e331bb8783277aac443c357f25e108fd7b7cd80a0733"
)

// TestSum computes the sum as provider-helm does, from values written in Go, and compares with the golden one.
func TestSum(t *testing.T) {
	all := []types.Patch{
		{
			Patch: "- op: replace\n  path: /data/a\n  value: <b> & c",
			Target: &types.Selector{
				ResId:         resid.ResId{Gvk: resid.Gvk{Kind: "ConfigMap", Version: "v1"}, Name: "app"},
				LabelSelector: "app=web",
			},
		},
		{
			Patch:   "{apiVersion: apps/v1, kind: Deployment, metadata: {name: app}, spec: {replicas: 2}}",
			Options: &types.PatchArgs{AllowNameChange: true},
		},
		{Patch: "[]", Target: &types.Selector{ResId: resid.ResId{Gvk: resid.Gvk{Kind: "Service"}}}},
	}
	encoded, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	sum, patches, err := Patches(documents(twoPatches, "", onePatch))
	if err != nil || sum != fmt.Sprintf("%x", sha256.Sum256(encoded)) || sum != golden {
		t.Errorf("%s %v", sum, err)
	}
	if len(patches) != 2 || string(patches[1]) != `{"patches":[{"patch":"[]","target":{"kind":"Service"}}]}` {
		t.Errorf("%s", patches)
	}
}

func TestNoPatches(t *testing.T) {
	sum, patches, err := Patches(documents("", "null", "{}", "patches: []", "other: 1"))
	if sum != "" || patches != nil || err != nil {
		t.Errorf("%s %s %v", sum, patches, err)
	}
}

func TestPatchRefusals(t *testing.T) {
	for _, row := range []struct{ rule, document, want string }{
		{"not a mapping", "- patch: " + canary, "spec.here: must be a mapping, not a list"},
		{"patches are a list", "patches: " + canary, "spec.here: patches cannot be a string"},
		{"a target is a mapping", "patches: [{patch: x, target: " + canary + "}]", "spec.here: patches.target cannot be a string"},
		{"a path leads nowhere", "patches: [{path: " + canary + "}]", "spec.here: patches[0] must be inline: there is no file for its path"},
		{"an empty patch", "patches: [{patch: x}, {target: {kind: " + canary + "}}]", "spec.here: patches[1] has no patch"},
		{"a line is told", "patches:\n- patch: [" + canary, "spec.here: is not valid YAML: line 2: did not find expected ',' or ']'"},
	} {
		t.Run(row.rule, func(t *testing.T) {
			_, _, err := Patches(documents(row.document))
			refused(t, err, row.want)
		})
	}
}
