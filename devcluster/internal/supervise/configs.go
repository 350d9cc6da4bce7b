package supervise

import (
	_ "embed"
	"fmt"
	"strings"

	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %q
  qps: 2000
  burst: 4000
leaderElection:
  leaderElect: false
enableProfiling: false
`

//go:embed manifests/stages.yaml
var ownStages string

// neverStart keeps KWOK's readiness stage off the pods that are to stay pending.
const neverStart = `    matchExpressions:
    - {key: '.metadata.annotations["dev.pilothouse.dev/pod"]', operator: NotIn, values: [pending]}
`

// writeConfigs writes what components take from files only.
func writeConfigs(home *home) error {
	scheduler := fmt.Sprintf(schedulerConfig, home.path("kube-scheduler.kubeconfig"))
	if err := writeFile(home.path("kube-scheduler.yaml"), []byte(scheduler)); err != nil {
		return err
	}
	return writeFile(home.path("kwok.yaml"), []byte(stages()))
}

// stages are KWOK's fast ones, except that pods complete by our rules.
func stages() string {
	ready := strings.Replace(podfast.DefaultPodReady, "    matchExpressions:\n", neverStart, 1)
	return strings.Join([]string{
		nodefast.DefaultNodeInit, nodeheartbeat.DefaultNodeHeartbeat, ready, podfast.DefaultPodDelete, ownStages,
	}, "\n---\n")
}
