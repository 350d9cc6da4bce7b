package helm

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"helm.sh/helm/v4/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// phrases of Helm's that have no error value to compare with.
var phrases = []struct {
	text string
	kind enginev1.Fault_Kind
}{
	{"another operation (install/upgrade/rollback) is in progress", enginev1.Fault_BUSY},
	{"cannot reuse a name that is still in use", enginev1.Fault_ALREADY_EXISTS},
	{"exists and cannot be imported into the current release", enginev1.Fault_ALREADY_EXISTS},
	{"chart requires kubeVersion", enginev1.Fault_CHART_INVALID},
	{"chart dependencies processing failed", enginev1.Fault_CHART_INVALID},
	{"labels contains system reserved label name", enginev1.Fault_INVALID},
	{"release name", enginev1.Fault_INVALID},
	{"no matches for kind", enginev1.Fault_REJECTED},
	{"Object 'Kind' is missing", enginev1.Fault_REJECTED},
	{"error parsing", enginev1.Fault_REJECTED},
	{"cannot both be set", enginev1.Fault_REJECTED},
}

// explain translates whatever Helm, the API server or we say into one fault: the only place where that is done.
func (a *run) explain(err error) *fault.Error {
	if err == nil {
		return nil
	}
	var waited *waitError
	if errors.As(err, &waited) {
		return waited.fault()
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return known
	}
	where := a.request.GetNamespace() + "/" + a.request.GetName()
	switch {
	case errors.Is(err, context.Canceled):
		return fault.Wrap(enginev1.Fault_CANCELLED, err, "the wait for %s was cancelled", where)
	case errors.Is(err, driver.ErrReleaseExists):
		return fault.Wrap(enginev1.Fault_BUSY, err, "another Helm operation on release %s has just made the same revision", where)
	case errors.Is(err, driver.ErrReleaseNotFound), errors.Is(err, driver.ErrNoDeployedReleases):
		return fault.Wrap(enginev1.Fault_NOT_FOUND, err, "there is no such revision of release %s", where)
	}
	text := err.Error()
	if message, ok := schemaMessage(text); ok {
		return fault.Wrap(enginev1.Fault_VALUES, err, "%s", message)
	}
	if refused := a.refusals(err); refused != nil {
		return refused
	}
	for _, phrase := range phrases {
		if strings.Contains(text, phrase.text) {
			return fault.Wrap(phrase.kind, err, "%s", tidy(text))
		}
	}
	if message, ok := renderMessage(text); ok {
		return fault.Wrap(enginev1.Fault_RENDER, err, "%s", message)
	}
	return fault.Wrap(enginev1.Fault_UNKNOWN, err, "%s", tidy(text))
}

func (e *waitError) fault() *fault.Error {
	objects := redact(e.Error())
	switch {
	case ended(e.cause):
		return fault.Wrap(enginev1.Fault_CANCELLED, e, "the wait was cancelled; %s", objects)
	case e.purpose == "hook" && e.failed:
		return fault.Wrap(enginev1.Fault_HOOK, e, "hook %s", objects)
	case e.purpose == "hook":
		return fault.Wrap(enginev1.Fault_TIMEOUT, e, "a hook did not end in time: %s", objects)
	case e.purpose == "gone":
		return fault.Wrap(enginev1.Fault_TIMEOUT, e, "not gone in time: %s", objects)
	case e.failed:
		return fault.Wrap(enginev1.Fault_TIMEOUT, e, "failed to become ready: %s", objects)
	}
	return fault.Wrap(enginev1.Fault_TIMEOUT, e, "not ready in time: %s", objects)
}

var (
	// The ways Helm and we name the object a request was about, before the API server's words.
	inApply = regexp.MustCompile(`object [^/\s]*/(\S+) \S+, Kind=(\w+)`)
	inHook  = regexp.MustCompile(`[Hh]ook (\S+) (\S+) failed`)
	// How the API server names it: said once is enough.
	itself = regexp.MustCompile(`^(?:[A-Z]\w*(?:\.[\w.-]+)? "[^"]*" is invalid: |failed to create typed (?:patch )?object \([^)]*\): )`)
)

// refusals gives the API server's answers in an error, each with the object it is about.
func (a *run) refusals(err error) *fault.Error {
	var first *fault.Error
	var messages []string
	for _, branch := range branches(err) {
		answer := fault.FromAPI(branch)
		if answer.HTTPStatus == 0 && (answer.Kind == enginev1.Fault_UNKNOWN || answer.Kind == enginev1.Fault_REJECTED) {
			continue // not an answer, nor the lack of one
		}
		if answer.Kind == enginev1.Fault_UNKNOWN && strings.Contains(branch.Error(), "failed to create typed") {
			answer.Kind = enginev1.Fault_REJECTED // a field of no schema: the API server calls it an internal error
		}
		if first == nil {
			first = answer
		}
		messages = append(messages, refusal(answer, branch))
	}
	if first == nil {
		return nil
	}
	const enough = 3
	if len(messages) > enough {
		messages = append(messages[:enough], fmt.Sprintf("and %d more", len(messages)-enough))
	}
	out := fault.Wrap(first.Kind, err, "%s", strings.Join(messages, "; "))
	out.HTTPStatus = first.HTTPStatus
	return out
}

// refusal is one answer in words: which object, of which hook, and why.
func refusal(answer *fault.Error, err error) string {
	message := answer.Message
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		message = status.Status().Message
	}
	if about := inApply.FindStringSubmatch(err.Error()); about != nil {
		doing := "applying"
		if answer.Kind == enginev1.Fault_REJECTED {
			doing = "the API server refused"
		}
		message = fmt.Sprintf("%s %s %s: %s", doing, about[2], about[1], itself.ReplaceAllString(message, ""))
		if about[2] == "Secret" {
			message = withoutValues(message)
		}
	}
	if hook := inHook.FindStringSubmatch(err.Error()); hook != nil {
		message = fmt.Sprintf("%s hook %s: %s", hook[1], inChart(hook[2]), message)
	}
	return redact(message)
}

// branches splits joined errors: an apply may be refused for several objects at once.
func branches(err error) []error {
	for current := err; current != nil; current = errors.Unwrap(current) {
		if joined, ok := current.(interface{ Unwrap() []error }); ok {
			var out []error
			for _, one := range joined.Unwrap() {
				out = append(out, branches(one)...)
			}
			return out
		}
	}
	return []error{err}
}
