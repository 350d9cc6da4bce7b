package observe

import (
	"encoding/json"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/pilothouse-dev/pilothouse/engine/internal/drift"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// maxMessage bounds what is kept of an object.
const maxMessage = 512

// objectKey names an object within its kind.
type objectKey struct{ namespace, name string }

// objectState is all that is kept of an object.
type objectState struct {
	state      enginev1.ObjectState_State
	message    string
	generation int64
	by         *judge // nil: kstatus
	// trace is zero where nobody asks whether the object was changed.
	trace drift.Trace
	// controlled objects (a ReplicaSet, a Pod) inherit Helm's label but belong to their controller.
	controlled bool
	label      label
}

// tells compares what would be told to the brain; a generation alone is not news.
func (s objectState) tells(o objectState) bool {
	return s.state != o.state || s.message != o.message || s.controlled != o.controlled
}

// unjudged states are the same whoever judges.
func (s objectState) unjudged() bool {
	return s.state == enginev1.ObjectState_NOT_FOUND || s.state == enginev1.ObjectState_UNKNOWN
}

var (
	notFound = objectState{state: enginev1.ObjectState_NOT_FOUND}
)

func unknown(reason string) objectState {
	return objectState{state: enginev1.ObjectState_UNKNOWN, message: clip(fault.Sentence(reason))}
}

// stateObject carries a state through a reflector.
type stateObject struct {
	raw.Head
	state   objectState
	ignored bool // nobody's
}

// stateless kinds are Current as soon as they exist, so their metadata is all that is asked for.
var stateless = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}:      true,
	{Kind: "Secret"}:         true,
	{Kind: "ServiceAccount"}: true,
	{Kind: "LimitRange"}:     true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:              true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:               true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:              true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                  true,
}

// viewer is how an object's state is made of it: by kstatus alone, by a health check, by a foreign object's
// conditions.
type viewer struct {
	by       *judge
	foreign  bool
	metadata bool // there is nothing else to see
}

// compute is an object's state; the object itself is dropped.
func (v viewer) compute(data []byte) (objectState, error) {
	if v.metadata {
		out, err := computeMetadata(data)
		out.controlled = out.controlled && !v.foreign
		return out, err
	}
	object := &unstructured.Unstructured{}
	if err := kjson.Unmarshal(data, &object.Object); err != nil {
		return objectState{}, err
	}
	out := byKstatus(object)
	out.controlled = out.controlled && !v.foreign // whose it is does not matter: it was asked for
	switch {
	case v.by != nil:
		return v.by.judge(object, out), nil
	case v.foreign:
		return byConditions(object, out), nil
	case out.state != enginev1.ObjectState_CURRENT && object.GetKind() == "Pod":
		out.message = podMessage(data, out.message)
	}
	return out, nil
}

func byKstatus(object *unstructured.Unstructured) objectState {
	out := objectState{generation: object.GetGeneration(), controlled: metav1.GetControllerOfNoCopy(object) != nil}
	result, err := status.Compute(object)
	if err != nil {
		out.message = clip(fault.Sentence(err.Error()))
		return out
	}
	out.state = states[result.Status]
	// "Resource is current" in ten variations is not worth keeping, nor telling.
	if out.state != enginev1.ObjectState_CURRENT {
		out.message = clip(result.Message)
	}
	return out
}

func computeMetadata(data []byte) (objectState, error) {
	var object struct {
		Metadata struct {
			Generation        int64            `json:"generation"`
			DeletionTimestamp string           `json:"deletionTimestamp"`
			OwnerReferences   []ownerReference `json:"ownerReferences"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return objectState{}, err
	}
	out := objectState{state: enginev1.ObjectState_CURRENT, generation: object.Metadata.Generation}
	if object.Metadata.DeletionTimestamp != "" {
		out.state, out.message = enginev1.ObjectState_TERMINATING, "Resource scheduled for deletion"
	}
	for _, owner := range object.Metadata.OwnerReferences {
		out.controlled = out.controlled || owner.Controller
	}
	return out, nil
}

type ownerReference struct {
	Controller bool `json:"controller"`
}

var states = map[status.Status]enginev1.ObjectState_State{
	status.CurrentStatus:     enginev1.ObjectState_CURRENT,
	status.InProgressStatus:  enginev1.ObjectState_IN_PROGRESS,
	status.FailedStatus:      enginev1.ObjectState_FAILED,
	status.TerminatingStatus: enginev1.ObjectState_TERMINATING,
	status.NotFoundStatus:    enginev1.ObjectState_NOT_FOUND,
	status.UnknownStatus:     enginev1.ObjectState_UNKNOWN,
}

func clip(message string) string {
	if len(message) <= maxMessage {
		return intern(message)
	}
	cut := maxMessage
	for cut > 0 && message[cut]&0xC0 == 0x80 { // not within a rune
		cut--
	}
	return message[:cut] + "…"
}
