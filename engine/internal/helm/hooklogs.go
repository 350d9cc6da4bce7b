package helm

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// keepLogs reads the end of what failed hooks said, while they are still there.
func (k *kubeClient) keepLogs(list kube.ResourceList) {
	ctx, cancel := context.WithTimeout(context.Background(), logPatience)
	defer cancel()
	for _, info := range list {
		kind := info.Mapping.GroupVersionKind.Kind
		if kind != "Job" && kind != "Pod" {
			continue
		}
		text, err := k.logOf(ctx, info)
		log := &enginev1.HookLog{Hook: kind + " " + info.Name, Text: text}
		if err != nil {
			log.Missing = fault.Sentence(fault.FromAPI(err).Message)
		}
		k.run.logs = append(k.run.logs, log)
	}
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
		if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
			return status.Name
		}
	}
	if len(pod.Spec.Containers) > 0 {
		return pod.Spec.Containers[0].Name
	}
	return ""
}

// tail keeps the last lines of a stream, however long they are.
func tail(stream io.Reader) (string, error) {
	var kept []byte
	buffer := make([]byte, logBytes)
	for {
		n, err := stream.Read(buffer)
		if kept = append(kept, buffer[:n]...); len(kept) > logBytes {
			kept = kept[len(kept)-logBytes:]
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
	}
	lines := strings.Split(strings.TrimRight(strings.ToValidUTF8(string(kept), ""), "\n"), "\n")
	if len(lines) > logLines {
		lines = lines[len(lines)-logLines:]
	}
	return strings.Join(lines, "\n"), nil
}
