package observe

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/expression"
)

// judge is a health check: it says how objects of one kind of one release are.
type judge struct {
	origin          string
	current, failed *expression.Expression
	broken          string // why it cannot judge; the brain refuses such a check before it gets here
	discreet        bool   // an error could quote a Secret
}

func newJudge(check *enginev1.HealthCheck) *judge {
	j := &judge{origin: check.GetOrigin(), discreet: check.GetKind() == "Secret"}
	j.current = j.compile("current", check.GetCurrent())
	j.failed = j.compile("failed", check.GetFailed())
	return j
}

func (j *judge) compile(field, text string) *expression.Expression {
	if text == "" {
		return nil
	}
	compiled, err := expression.Compile(text)
	if err != nil {
		j.broken = fmt.Sprintf("%s.%s: %v", j.origin, field, err)
	}
	return compiled
}

// judge says how an object is; base is what kstatus says of it.
func (j *judge) judge(object *unstructured.Unstructured, base objectState) objectState {
	out := base
	out.by = j
	switch {
	case base.state == enginev1.ObjectState_TERMINATING || base.controlled:
		return out
	case j.broken != "":
		out.state, out.message = enginev1.ObjectState_UNKNOWN, clip(j.broken)
		return out
	}
	if j.failed != nil {
		// An error here is a field that is not there yet, so not a failure.
		if yes, err := j.failed.True(object.Object); err == nil && yes {
			out.state, out.message = enginev1.ObjectState_FAILED, j.origin+".failed is true"
			return out
		}
	}
	if j.current == nil {
		return out
	}
	out.state, out.message = enginev1.ObjectState_IN_PROGRESS, ""
	if behind(object) {
		out.message = "its controller has not seen the newest spec yet"
		return out
	}
	switch yes, err := j.current.True(object.Object); {
	case err != nil && j.discreet:
		out.message = j.origin + ".current cannot be answered"
	case err != nil:
		out.message = clip(fmt.Sprintf("%s.current: %v", j.origin, err))
	case yes:
		out.state = enginev1.ObjectState_CURRENT
	default:
		out.message = j.origin + ".current is false"
	}
	return out
}

// behind tells whether a status speaks of an older spec.
func behind(object *unstructured.Unstructured) bool {
	seen, ok, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	return ok && seen < object.GetGeneration()
}
