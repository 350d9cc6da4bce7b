package observe

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

const (
	// ownerDepth is how far a pod's owners are followed: a Job's pod, a Deployment's by its ReplicaSet.
	ownerDepth = 3
	// ownerPatience is how long an owner's object may take to come.
	ownerPatience = 2 * time.Second
	// An owner that gave no answer is asked again after ownerRetry, then ever more rarely.
	ownerRetry     = 500 * time.Millisecond
	ownerRetryMost = time.Minute
	// ownersKept is how many owners are remembered: a CronJob alone may make a thousand in a day.
	ownersKept = 1000
)

// question is an owner of which its own owner is not known, and the pods that wait for that.
type question struct {
	of      owner
	pods    map[string]*podObject // by name
	refused bool                  // rights are missing
	resting bool                  // until they may have changed
	wait    time.Duration         // since the last time; none: it was not asked yet
	due     time.Time
}

// workload follows owners up to one that a release has, or to the last; a question says that there may be others above.
func (s *podStore) workload(of owner) (workload, *question) {
	for range ownerDepth {
		found := workload{of.gvk().GroupKind(), objectKey{s.namespace, of.Name}}
		if s.observer.model.has(found) {
			return found, nil
		}
		above, known := s.owners.Get(of.UID)
		if !known {
			return found, s.question(of)
		}
		if above.(owner).Name == "" {
			return found, nil
		}
		of = above.(owner)
	}
	return workload{of.gvk().GroupKind(), objectKey{s.namespace, of.Name}}, nil
}

func (s *podStore) question(of owner) *question {
	open := s.questions[of.UID]
	if open == nil {
		open = &question{of: of, pods: map[string]*podObject{}}
		s.questions[of.UID] = open
	}
	return open
}

// askLater has the owners asked that are in question, beside the watch: whoever does not answer must not hold it up, and
// their pods may have no further event.
func (s *podStore) askLater() {
	if s.asking || !s.curious() {
		return
	}
	s.asking = true
	s.observer.run(func(context.Context) {
		for s.askDue() {
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(s.retry):
			}
		}
	})
}

// curious tells whether some owner is to be asked, now or later.
func (s *podStore) curious() bool {
	for _, open := range s.questions {
		if !open.resting {
			return true
		}
	}
	return false
}

// askDue asks the owners whose time has come, and tells whether there are others.
func (s *podStore) askDue() bool {
	for {
		of, due, more := s.next()
		if !due {
			return more
		}
		above, err := s.observer.ownerOf(s.ctx, s.namespace, of)
		s.answered(of, above, err)
	}
}

// next is whom to ask now: those who were asked least come first, so that some who never answer hold up no other. If
// it is nobody, it tells whether somebody has to ask later.
func (s *podStore) next() (of owner, due, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var next *question
	for _, open := range s.questions {
		if !open.resting && !time.Now().Before(open.due) && (next == nil || open.wait < next.wait) {
			next = open
		}
	}
	if next == nil || s.ctx.Err() != nil {
		s.asking = s.curious()
		return owner{}, false, s.asking
	}
	return next.of, true, true
}

// answered takes an answer, or why there was none, and finds the workloads of the pods that waited for it.
func (s *podStore) answered(of, above owner, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := s.questions[of.UID]
	if err == nil {
		s.owners.Add(of.UID, above)
		delete(s.questions, of.UID)
	}
	if open == nil {
		return
	}
	if err != nil {
		open.refused = isForbidden(err)
		open.resting = open.refused
		open.wait = min(max(2*open.wait, s.retry), ownerRetryMost)
		open.due = time.Now().Add(open.wait)
	}
	for _, pod := range open.pods {
		s.place(pod)
	}
}

// askRefused has the owners asked again that might not be asked.
func (s *podStore) askRefused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, open := range s.questions {
		if open.resting {
			open.resting, open.due = false, time.Time{}
		}
	}
	s.askLater()
}

// ownerOf asks for an owner's own controller; one that is not there has none.
func (o *observer) ownerOf(ctx context.Context, namespace string, of owner) (owner, error) {
	mapping, err := o.at.Mapper().RESTMapping(of.gvk().GroupKind(), of.gvk().Version)
	if meta.IsNoMatchError(err) {
		return owner{}, nil
	}
	if err != nil {
		return owner{}, err
	}
	target := targetOf(mapping, namespace)
	target.MetadataOnly = true
	ctx, cancel := context.WithTimeout(ctx, ownerPatience)
	defer cancel()
	data, err := raw.Get(ctx, o.at.REST(), target, of.Name)
	if err != nil {
		switch fault.FromAPI(err).Kind {
		case enginev1.Fault_NOT_FOUND, enginev1.Fault_NAMESPACE_MISSING:
			return owner{}, nil
		}
		return owner{}, err
	}
	var object struct {
		Metadata struct {
			UID             string  `json:"uid"`
			OwnerReferences []owner `json:"ownerReferences"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return owner{}, err
	}
	if object.Metadata.UID != of.UID {
		return owner{}, nil // another of the same name
	}
	return controllerOf(object.Metadata.OwnerReferences), nil
}
