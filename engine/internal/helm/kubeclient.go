package helm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/inventory"
)

// kubeClient is Helm's client with what Helm does wrong for a long-running, many-release process put right: no
// client-side validation (it downloads the whole OpenAPI schema), no CRD in any list (an upgrade would delete
// it), waits on the shared clients that can be cancelled, deletions that are followed to their end.
type kubeClient struct {
	*kube.Client
	run *run

	// forgiveMissingKinds drops objects of unknown kinds from old manifests.
	forgiveMissingKinds bool
	// keepRecordUntilGone makes a deletion that did not end keep the release's record.
	keepRecordUntilGone bool
	// around says what to do about fields that others have; nil: fail.
	around *enginev1.Around

	stuck        error // why deleted objects are not gone
	deleteErrors []error
	deleting     map[string]types.UID // deleted, but still there when the API server answered
	built        kube.ResourceList    // the last old manifest or hook built
	target       string               // the manifest built last as the target, and what became of it
	targetList   kube.ResourceList
	targetRefs   []inventory.Ref
}

var (
	_ kube.Interface            = (*kubeClient)(nil)
	_ kube.InterfaceWaitOptions = (*kubeClient)(nil)
)

func newKubeClient(a *run) *kubeClient {
	client := kube.New(a.getter())
	client.Namespace = a.request.GetNamespace()
	client.SetLogger(quiet)
	return &kubeClient{Client: client, run: a, deleting: map[string]types.UID{}}
}

// IsReachable costs a client and a request in Helm's own; the first real request tells as well.
func (k *kubeClient) IsReachable() error { return nil }

// Build makes objects of a manifest. Helm asks to validate what it is about to write, and never what it wrote
// before: that tells the two apart.
func (k *kubeClient) Build(reader io.Reader, validate bool) (kube.ResourceList, error) {
	if k.stuck != nil {
		return nil, k.stuck // no hook runs while deleted objects remain: it will when they are gone
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	manifest := string(data)
	if validate && k.target == manifest && k.targetList != nil {
		// An upgrade builds its target twice, the first time only to see whether it can.
		list := k.targetList
		k.targetList = nil
		return list, nil
	}
	if validate {
		if err := k.run.createMissing(crdDocuments(manifest)); err != nil {
			return nil, err
		}
	}
	list, err := k.build(withoutCRDs(manifest), !validate && k.forgiveMissingKinds)
	if err != nil {
		return nil, err
	}
	list = list.Filter(func(info *resource.Info) bool {
		kind := info.Mapping.GroupVersionKind
		return kind.Group != crdGroup || kind.Kind != crdKind
	})
	switch {
	case !validate:
		k.built = list
	case k.run.records.made == 0:
		k.target, k.targetList, k.targetRefs = manifest, list, refs(list)
	}
	return list, nil
}

func (k *kubeClient) build(manifest string, forgive bool) (kube.ResourceList, error) {
	list, err := k.Client.Build(strings.NewReader(manifest), false)
	if err == nil || !forgive || !strings.Contains(err.Error(), "no matches for kind") {
		return list, err
	}
	var kept bytes.Buffer
	for _, document := range splitDocuments(manifest) {
		var head metav1.TypeMeta
		if yaml.Unmarshal([]byte(document), &head) == nil {
			kind := schema.FromAPIVersionAndKind(head.APIVersion, head.Kind)
			if _, err := k.run.cluster.Mapper().RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
				continue
			}
		}
		kept.WriteString("---\n" + document)
	}
	return k.Client.Build(&kept, false)
}

// Create tolerates an empty list: a hook may have been a CRD only.
func (k *kubeClient) Create(list kube.ResourceList, options ...kube.ClientCreateOption) (*kube.Result, error) {
	if len(list) == 0 {
		return &kube.Result{}, nil
	}
	k.run.progress.say(enginev1.Progress_APPLYING, "")
	result, err := k.Client.Create(list, options...)
	k.run.applied(result)
	return result, err
}

// Update only adds to Helm's own the phase, and what objects looked like when they had been applied. An install
// comes here with the objects that it adopts, whoever kept them before.
func (k *kubeClient) Update(original, target kube.ResourceList, options ...kube.ClientUpdateOption) (*kube.Result, error) {
	k.run.progress.say(enginev1.Progress_APPLYING, "")
	if k.run.request.GetAction() == enginev1.RunRequest_INSTALL {
		if err := k.run.inherit(original...); err != nil {
			return nil, err
		}
	}
	result, err := k.updateAround(original, target, options...)
	k.run.applied(result)
	return result, err
}

// Delete deletes kind by kind, as Helm does, and reads the answers: an object that went at once need not be
// waited for, which is most of them.
func (k *kubeClient) Delete(list kube.ResourceList, policy metav1.DeletionPropagation) (*kube.Result, []error) {
	k.run.progress.say(enginev1.Progress_APPLYING, "")
	var (
		errs   []error
		mutex  sync.Mutex
		result = &kube.Result{}
	)
	for start := 0; start < len(list); {
		end := start + 1
		for end < len(list) && list[end].Mapping.GroupVersionKind.Kind == list[start].Mapping.GroupVersionKind.Kind {
			end++
		}
		var batch sync.WaitGroup
		for _, info := range list[start:end] {
			batch.Go(func() {
				uid, remains, err := deleteObject(info, policy)
				mutex.Lock()
				defer mutex.Unlock()
				if err != nil {
					errs = append(errs, err)
					return
				}
				result.Deleted = append(result.Deleted, info)
				if remains {
					k.deleting[objectKey(info)] = uid
				}
			})
		}
		batch.Wait()
		start = end
	}
	if len(errs) > 0 {
		k.deleteErrors = append(k.deleteErrors, errs...)
		return nil, errs
	}
	return result, nil
}

// GetPodList and OutputContainerLogsForPodList use the shared client: Helm's own is made by IsReachable.
func (k *kubeClient) GetPodList(namespace string, options metav1.ListOptions) (*corev1.PodList, error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	return k.run.cluster.Clientset().CoreV1().Pods(namespace).List(ctx, options)
}

// OutputContainerLogsForPodList writes hook logs where the configuration says.
func (k *kubeClient) OutputContainerLogsForPodList(pods *corev1.PodList, namespace string, writer func(namespace, pod, container string) io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	var errs []error
	for _, pod := range pods.Items {
		for _, container := range pod.Spec.Containers {
			stream, err := k.run.cluster.Clientset().CoreV1().Pods(namespace).
				GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name}).Stream(ctx)
			if err == nil {
				_, err = io.Copy(writer(namespace, pod.Name, container.Name), stream)
				_ = stream.Close()
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func objectKey(info *resource.Info) string {
	return strings.Join([]string{info.Mapping.Resource.GroupResource().String(), info.Namespace, info.Name}, "/")
}

func refs(list kube.ResourceList) []inventory.Ref {
	out := make([]inventory.Ref, 0, len(list))
	for _, info := range list {
		if info.Name == "" {
			continue // generateName: nobody can know it beforehand
		}
		out = append(out, infoRef(info))
	}
	return out
}
