package helm

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// verdict is what an object's state means for a wait.
type verdict int

const (
	pending verdict = iota
	done
	failed
)

// deleted is what a watch says of an object that goes.
const deleted = "was deleted"

// judge decides about one object, with a few words for the message if it is not done.
type judge func(*unstructured.Unstructured) (verdict, string)

// waitError says what a wait did not get to see, and why it ended.
type waitError struct {
	purpose string // ready, hook or gone
	objects []string
	failed  bool  // an object failed for good, the wait did not run out
	cause   error // the context's
}

func (e *waitError) Error() string { return strings.Join(e.objects, "; ") }
func (e *waitError) Unwrap() error { return e.cause }

// awaitAll waits until each object is done. An object that fails for good is not waited for any longer, the
// others are: so Helm does it. Each is watched by name, from the state its apply answered with; what is done
// already costs no request at all.
func (k *kubeClient) awaitAll(list kube.ResourceList, timeout time.Duration, purpose string, decide judge) error {
	waiting := make([]*resource.Info, 0, len(list))
	for _, info := range list {
		if seen, ok := info.Object.(*unstructured.Unstructured); ok {
			if v, _ := decide(seen); v == done {
				continue
			}
		}
		waiting = append(waiting, info)
	}
	return k.await(waiting, timeout, purpose, func(ctx context.Context, info *resource.Info) (verdict, string) {
		return k.follow(ctx, info, decide)
	})
}

// awaitGone waits until the objects whose deletion is under way have gone.
func (k *kubeClient) awaitGone(list kube.ResourceList, timeout time.Duration) error {
	var waiting []*resource.Info
	for _, info := range list {
		if _, ok := k.deleting[objectKey(info)]; ok {
			waiting = append(waiting, info)
		}
	}
	return k.await(waiting, timeout, "gone", k.followDeletion)
}

func (k *kubeClient) await(list []*resource.Info, timeout time.Duration, purpose string,
	follow func(context.Context, *resource.Info) (verdict, string),
) error {
	if len(list) == 0 {
		return nil
	}
	k.run.progress.say(enginev1.Progress_WAITING, awaited(list, purpose))
	ctx, cancel := context.WithTimeout(k.run.waits, timeout)
	defer cancel()
	var (
		all    sync.WaitGroup
		mutex  sync.Mutex
		result = &waitError{purpose: purpose}
	)
	for _, info := range list {
		all.Go(func() {
			v, why := follow(ctx, info)
			if v == done {
				return
			}
			mutex.Lock()
			defer mutex.Unlock()
			result.failed = result.failed || v == failed
			result.objects = append(result.objects, fmt.Sprintf("%s %s: %s", info.Mapping.GroupVersionKind.Kind, info.Name, why))
		})
	}
	all.Wait()
	if len(result.objects) == 0 {
		return nil
	}
	sort.Strings(result.objects)
	result.cause = ctx.Err()
	return result
}

// awaited names what is waited for, for people.
func awaited(list []*resource.Info, purpose string) string {
	first := list[0].Mapping.GroupVersionKind.Kind + " " + list[0].Name
	if len(list) > 1 {
		first = fmt.Sprintf("%d objects", len(list))
	}
	if purpose == "hook" {
		return "hook " + first
	}
	return first + " to be " + purpose
}

// follow watches one object until the judge is satisfied.
func (k *kubeClient) follow(ctx context.Context, info *resource.Info, decide judge) (verdict, string) {
	client := k.objects(info)
	last := "does not exist"
	version := info.ResourceVersion
	if seen, ok := info.Object.(*unstructured.Unstructured); ok {
		_, last = decide(seen)
	}
	for {
		if version == "" {
			live, err := client.Get(ctx, info.Name, metav1.GetOptions{})
			switch {
			case err == nil:
				v, why := decide(live)
				if v != pending {
					return v, why
				}
				last, version = why, live.GetResourceVersion()
			case apierrors.IsNotFound(err):
				last = "does not exist"
			case ctx.Err() == nil:
				last = oneLine(err.Error())
			}
		}
		if version != "" {
			v, why := watchOne(ctx, client, info.Name, version, decide)
			if v != pending {
				return v, why
			}
			if why != "" {
				last = why
			}
		}
		if !pause(ctx, time.Second) {
			return pending, last
		}
		version = ""
	}
}

// watchOne judges each state a watch shows. It returns pending when the watch ends for whatever reason.
func watchOne(ctx context.Context, client dynamic.ResourceInterface, name, version string, decide judge) (verdict, string) {
	seconds := int64(300)
	events, err := client.Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", name).String(),
		ResourceVersion: version,
		TimeoutSeconds:  &seconds,
	})
	if err != nil {
		return pending, "" // forbidden, or an API without watches: ask again and again instead
	}
	defer events.Stop()
	last := ""
	for event := range events.ResultChan() {
		live, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Error {
			return pending, last
		}
		if event.Type == watch.Deleted {
			return pending, deleted
		}
		if event.Type == watch.Bookmark {
			continue
		}
		v, why := decide(live)
		if v != pending {
			return v, why
		}
		last = why
	}
	return pending, last
}

// followDeletion waits until an object is gone, or is another one of the same name.
func (k *kubeClient) followDeletion(ctx context.Context, info *resource.Info) (verdict, string) {
	uid := k.deleting[objectKey(info)]
	client := k.objects(info)
	last := "is still there"
	for {
		live, err := client.Get(ctx, info.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return done, ""
		case err == nil && uid != "" && live.GetUID() != uid:
			return done, ""
		case err == nil:
			if held := live.GetFinalizers(); len(held) > 0 {
				last = "is held by " + strings.Join(held, ", ")
			}
			gone := func(*unstructured.Unstructured) (verdict, string) { return pending, "" }
			_, why := watchOne(ctx, client, info.Name, live.GetResourceVersion(), gone)
			if why == deleted {
				return done, ""
			}
		case ctx.Err() == nil:
			last = oneLine(err.Error())
		}
		if !pause(ctx, 500*time.Millisecond) {
			return pending, last
		}
	}
}

func (k *kubeClient) objects(info *resource.Info) dynamic.ResourceInterface {
	all := k.run.cluster.Dynamic().Resource(info.Mapping.Resource)
	if info.Namespaced() {
		return all.Namespace(info.Namespace)
	}
	return all
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// readiness is kstatus: what `helm --wait` means.
func readiness(object *unstructured.Unstructured) (verdict, string) {
	if paused, _, _ := unstructured.NestedBool(object.Object, "spec", "paused"); paused && object.GetKind() == "Deployment" {
		return done, "" // it will not progress, by its owner's will
	}
	result, err := status.Compute(object)
	if err != nil {
		return pending, oneLine(err.Error())
	}
	switch result.Status {
	case status.CurrentStatus:
		return done, ""
	case status.FailedStatus:
		return failed, result.Message
	}
	return pending, result.Message
}

func readinessWithJobs(object *unstructured.Unstructured) (verdict, string) {
	if object.GetKind() == "Job" {
		return completion(object)
	}
	return readiness(object)
}

// completion is what a hook waits for: a Job or a Pod that ran to its end; other kinds need only exist.
func completion(object *unstructured.Unstructured) (verdict, string) {
	switch object.GroupVersionKind().GroupKind().String() {
	case "Job.batch":
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, condition := range conditions {
			fields, _ := condition.(map[string]any)
			if fields["status"] != "True" {
				continue
			}
			switch fields["type"] {
			case "Complete":
				return done, ""
			case "Failed":
				return failed, fmt.Sprintf("failed: %v", fields["message"])
			}
		}
		return pending, "has not completed"
	case "Pod":
		switch phase, _, _ := unstructured.NestedString(object.Object, "status", "phase"); phase {
		case "Succeeded":
			return done, ""
		case "Failed":
			return failed, "failed"
		}
		return pending, "has not completed"
	}
	return done, ""
}

// ended says whether err is a wait that the caller ended.
func ended(err error) bool { return errors.Is(err, context.Canceled) }
