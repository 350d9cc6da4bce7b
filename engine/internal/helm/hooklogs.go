package helm

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const (
	logLines = 20
	logBytes = 4 << 10
	// logPatience bounds the reading: a node that does not answer must not hold a release.
	logPatience = 5 * time.Second
	jobLabel    = "batch.kubernetes.io/job-name"
)

// hookLogs is the end of what failed hooks said, read while they are still there, each once.
type hookLogs struct {
	kube  *kubeClient
	list  kube.ResourceList
	mutex sync.Mutex
	found map[string]*enginev1.HookLog
}

func newHookLogs(k *kubeClient, list kube.ResourceList) *hookLogs {
	return &hookLogs{kube: k, list: list, found: map[string]*enginev1.HookLog{}}
}

func (h *hookLogs) keepAll() {
	for _, info := range h.list {
		h.keep(info.Mapping.GroupVersionKind.Kind, info.Name)
	}
}

func (h *hookLogs) keep(kind, name string) {
	hook := kind + " " + name
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if (kind != "Job" && kind != "Pod") || h.found[hook].GetText() != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), logPatience)
	defer cancel()
	for _, info := range h.list {
		if info.Mapping.GroupVersionKind.Kind != kind || info.Name != name {
			continue
		}
		text, err := h.kube.logOf(ctx, info)
		log := &enginev1.HookLog{Hook: hook, Text: text}
		if err != nil {
			log.Missing = fault.Sentence(fault.FromAPI(err).Message)
		}
		h.found[hook] = log
	}
}

// kept returns the logs in the order of their hooks.
func (h *hookLogs) kept() []*enginev1.HookLog {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var kept []*enginev1.HookLog
	for _, info := range h.list {
		if log := h.found[info.Mapping.GroupVersionKind.Kind+" "+info.Name]; log != nil {
			kept = append(kept, log)
		}
	}
	return kept
}

// doomed tells a Job that will fail, while its pods are still there: Kubernetes deletes those that run (of a Job with
// restartPolicy OnFailure, or at a deadline) before it says Failed.
func doomed(object *unstructured.Unstructured) bool {
	if object.GroupVersionKind().GroupKind().String() != "Job.batch" {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		fields, _ := condition.(map[string]any)
		return fields["type"] == "FailureTarget" && fields["status"] == "True"
	})
}

func (k *kubeClient) logOf(ctx context.Context, info *resource.Info) (string, error) {
	pods := k.run.cluster.Clientset().CoreV1().Pods(info.Namespace)
	var found []corev1.Pod
	if info.Mapping.GroupVersionKind.Kind == "Pod" {
		pod, err := pods.Get(ctx, info.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		found = append(found, *pod)
	} else {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: jobLabel + "=" + info.Name})
		if err != nil {
			return "", err
		}
		found = list.Items
	}
	if len(found) == 0 {
		return "", fmt.Errorf("it has no pod")
	}
	pod := slices.MaxFunc(found, func(a, b corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	lines := int64(logLines)
	stream, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{Container: culprit(&pod), TailLines: &lines}).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	return tail(stream)
}

// culprit is the container that failed, or the first.
func culprit(pod *corev1.Pod) string {
	statuses := append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...)
	for _, status := range statuses {
		for _, state := range []corev1.ContainerState{status.State, status.LastTerminationState} {
			if ended := state.Terminated; ended != nil && ended.ExitCode != 0 {
				return status.Name
			}
		}
	}
	if len(pod.Spec.Containers) > 0 {
		return pod.Spec.Containers[0].Name
	}
	return ""
}

// tail keeps the last lines of a stream. A line that is cut goes: the rest of a password would not be known for one.
func tail(stream io.Reader) (string, error) {
	var kept []byte
	cut := false
	buffer := make([]byte, logBytes)
	for {
		n, err := stream.Read(buffer)
		if kept = append(kept, buffer[:n]...); len(kept) > logBytes {
			kept, cut = kept[len(kept)-logBytes:], true
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
	}
	lines := strings.Split(strings.TrimRight(strings.ToValidUTF8(string(kept), ""), "\n"), "\n")
	if cut {
		if lines = lines[1:]; len(lines) == 0 {
			lines = []string{"(one line, too long to be kept)"}
		}
	}
	if len(lines) > logLines {
		lines = lines[len(lines)-logLines:]
	}
	return strings.Join(lines, "\n"), nil
}
