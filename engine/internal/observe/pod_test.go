package observe

import (
	"testing"

	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

func TestWhyPodsFail(t *testing.T) {
	for status, want := range map[string]string{
		`{"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]}`:                                                              "",
		`{"phase": "Pending", "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]}`:                                 "",
		`{"phase": "Pending", "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]}`:      "ImagePullBackOff: no such image",
		`{"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}], "containerStatuses": []}`: "Error: container i ended with exit code 2",
		`{"phase": "Running", "containerStatuses": [{"name": "main", "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
			"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}}]}`: "CrashLoopBackOff: container main ended with exit code 137",
		`{"phase": "Failed", "reason": "Evicted", "message": "no disk"}`: "Evicted: no disk",
		`{"phase": "Failed"}`:    "Failed",
		`{"phase": "Succeeded"}`: "",
		`{"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}]}`: "Unschedulable: 0/1 nodes",
	} {
		object, err := decodePod(raw.Head{Name: "p"}, []byte(`{"metadata": {"ownerReferences": [
			{"kind": "Node", "name": "n"}, {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "controller": true}]}, "status": `+status+`}`))
		if err != nil {
			t.Fatal(err)
		}
		if pod := object.(*podObject); pod.reason != want || pod.owner.Name != "r" {
			t.Errorf("%s: got %q of %q", status, pod.reason, pod.owner.Name)
		}
	}
}
