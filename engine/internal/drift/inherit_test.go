package drift

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func keptAs(t *testing.T, entries ...string) *unstructured.Unstructured {
	t.Helper()
	live := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","managedFields":`+
		string(managed(entries...))+`}}`), &live.Object); err != nil {
		t.Fatal(err)
	}
	return live
}

func TestInheritTakesWhatAnotherKeeperApplied(t *testing.T) {
	theirs := by("provider-helm", "Apply", "", noon, `{"f:data":{"f:a":{},"f:b":{}}}`)
	somebody := by("kubectl", "Update", "", later, `{"f:data":{"f:c":{}}}`)
	status := by("provider-helm", "Update", "status", later, `{"f:status":{"f:x":{}}}`)
	for name, row := range map[string]struct {
		entries []string
		ours    string // the fields of the one entry that is ours then; none: there is nothing to take
		others  int
	}{
		"its only keeper":     {[]string{theirs, somebody, status}, `{"f:data":{"f:a":{},"f:b":{}}}`, 2},
		"beside ours":         {[]string{theirs, by("helm", "Apply", "", later, `{"f:data":{"f:a":{},"f:z":{}}}`)}, `{"f:data":{"f:a":{},"f:b":{},"f:z":{}}}`, 0},
		"two before us":       {[]string{by("helm-controller", "Apply", "", later, `{"f:data":{"f:z":{}}}`), theirs}, `{"f:data":{"f:a":{},"f:b":{},"f:z":{}}}`, 0},
		"from the client":     {[]string{by("crossplane-helm-provider", "Update", "", noon, `{"f:data":{"f:a":{}}}`)}, `{"f:data":{"f:a":{}}}`, 0},
		"ours alone":          {[]string{by("helm", "Apply", "", noon, `{"f:data":{"f:a":{}}}`), somebody, status}, "", 0},
		"somebody's":          {[]string{somebody}, "", 0},
		"nobody's":            {nil, "", 0},
		"of another applier":  {[]string{by("kubectl", "Apply", "", noon, `{"f:data":{"f:a":{}}}`)}, "", 0},
		"only its own status": {[]string{status}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Inherit(keptAs(t, row.entries...))
			if err != nil || (got == nil) != (row.ours == "") {
				t.Fatalf("%v %v", got, err)
			}
			others := 0
			for _, one := range got {
				if one.Manager != Manager || one.Subresource != "" {
					others++
				} else if string(one.FieldsV1.GetRawBytes()) != row.ours || one.Operation != "Apply" {
					t.Errorf("%s %s", one.Operation, one.FieldsV1.GetRawBytes())
				}
			}
			if got != nil && (others != row.others || len(got) != others+1) {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestTheBookkeepingOfALivingKeeperStaysIts(t *testing.T) {
	finalizer := by("helm-controller", "Update", "", noon, `{"f:metadata":{"f:finalizers":{}}}`)
	for group, taken := range map[string]bool{"helm.toolkit.fluxcd.io/v2": false, "helm.crossplane.io/v1beta1": false, "v1": true} {
		live := keptAs(t, finalizer)
		entries := live.GetManagedFields()
		entries[0].APIVersion = group
		live.SetManagedFields(entries)
		if got, err := Inherit(live); err != nil || (got != nil) != taken {
			t.Errorf("%s: %v %v", group, got, err)
		}
	}
}

func TestAHandoverIsNoDrift(t *testing.T) {
	const fields = `{"f:data":{"f:a":{},"f:b":{}}}`
	before := Of(managed(by("provider-helm", "Apply", "", noon, fields)), Meta{Generation: 1}).Own
	if Of(managed(by("helm", "Apply", "", later, fields)), Meta{Generation: 2}).Own != before {
		t.Error("whose a field is changed, not the field")
	}
	// What an apply in our own name would make of it is compared with it before anything is taken over.
	both := managed(by("helm", "Apply", "", later, fields), by("provider-helm", "Apply", "", noon, fields))
	if Of(both, Meta{Generation: 1}).Own != before {
		t.Error("equal to what the other applied looks different")
	}
	taken := managed(by("provider-helm", "Apply", "", noon, `{"f:data":{"f:a":{}}}`), by("kubectl", "Update", "", later, `{"f:data":{"f:b":{}}}`))
	if Of(taken, Meta{Generation: 1}).Own == before {
		t.Error("a field taken from the other went unnoticed")
	}
}
