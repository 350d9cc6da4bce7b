package observe

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// telling conditions are those by which controllers say whether an object of theirs works. kstatus knows only
// Ready; a Canary says Promoted, an autoscaler whether it can scale.
var telling = map[string]bool{
	"Ready": true, "Available": true, "Healthy": true, "Promoted": true, "AbleToScale": true, "ScalingActive": true,
}

// disabled is no trouble: somebody scaled to zero.
const disabled = "ScalingDisabled"

// byConditions looks, where kstatus is content, at what the conditions of a foreign object say.
func byConditions(object *unstructured.Unstructured, base objectState) objectState {
	if base.state != enginev1.ObjectState_CURRENT {
		return base
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		kind, _ := condition["type"].(string)
		reason, _ := condition["reason"].(string)
		if !telling[kind] || condition["status"] != "False" || reason == disabled {
			continue
		}
		message, _ := condition["message"].(string)
		base.state, base.message = enginev1.ObjectState_IN_PROGRESS, clip(said(kind+" is False, "+reason, message))
		return base
	}
	return base
}
