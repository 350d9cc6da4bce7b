package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

func TestFromAPI(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	terminating := apierrors.NewForbidden(pods, "x", errors.New("unable to create new content in namespace n because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	refused := &url.Error{Op: "Get", URL: "https://user:hunter2@10.0.0.1:6443/api", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	for _, row := range []struct {
		name string
		err  error
		kind Kind
		text string
	}{
		{"missing object", apierrors.NewNotFound(pods, "x"), enginev1.Fault_NOT_FOUND, `pods "x" not found`},
		{"missing namespace", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "n"), enginev1.Fault_NAMESPACE_MISSING, `namespaces "n"`},
		{"terminating namespace", terminating, enginev1.Fault_NAMESPACE_TERMINATING, "being terminated"},
		{"wrapped", fmt.Errorf("creating: %w", apierrors.NewNotFound(pods, "x")), enginev1.Fault_NOT_FOUND, "not found"},
		{"exists", apierrors.NewAlreadyExists(pods, "x"), enginev1.Fault_ALREADY_EXISTS, "already exists"},
		{"conflict", apierrors.NewConflict(pods, "x", errors.New("modified")), enginev1.Fault_CONFLICT, "operation cannot"},
		{"rbac", apierrors.NewForbidden(pods, "x", errors.New(`User "jane" cannot get resource "pods"`)), enginev1.Fault_FORBIDDEN, "jane"},
		{"escalation", apierrors.NewForbidden(pods, "x", errors.New(`user "jane" (groups=["a"]) is attempting to grant RBAC permissions not currently held`)), enginev1.Fault_FORBIDDEN, "grant"},
		{"quota", apierrors.NewForbidden(pods, "x", errors.New("exceeded quota: q")), enginev1.Fault_REJECTED, "quota"},
		{"webhook", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "w" denied the request: no`}}, enginev1.Fault_REJECTED, "denied"},
		{"unauthorized", apierrors.NewUnauthorized("Unauthorized"), enginev1.Fault_UNAUTHORIZED, "unauthorized"},
		{"invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "x", nil), enginev1.Fault_REJECTED, "ConfigMap"},
		{"bad request", apierrors.NewBadRequest("what (0123456789abcdef0123456789abcdef)"), enginev1.Fault_REJECTED, "what"},
		{"too many", apierrors.NewTooManyRequests("later", 1), enginev1.Fault_UNREACHABLE, "later"},
		{"unavailable", apierrors.NewServiceUnavailable("down"), enginev1.Fault_UNREACHABLE, "down"},
		{"internal", apierrors.NewInternalError(errors.New("oops")), enginev1.Fault_UNKNOWN, "oops"},
		{"refused connection", refused, enginev1.Fault_UNREACHABLE, "at 10.0.0.1:6443"},
		{"deadline", context.DeadlineExceeded, enginev1.Fault_UNREACHABLE, "in time"},
		{"cancelled", context.Canceled, enginev1.Fault_CANCELLED, "cancelled"},
		{"fault", fmt.Errorf("x: %w", New(enginev1.Fault_BUSY, "busy")), enginev1.Fault_BUSY, "busy"},
		{"else", errors.New("Something odd.\nSecond line."), enginev1.Fault_UNKNOWN, "something odd. Second line"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := FromAPI(row.err)
			if got.Kind != row.kind || !strings.Contains(got.Message, row.text) {
				t.Fatalf("got %v %q, want %v %q", got.Kind, got.Message, row.kind, row.text)
			}
			if strings.Contains(got.Message, "hunter2") || strings.Contains(got.Message, "0123456789abcdef") || strings.Contains(got.Message, "\n") {
				t.Fatalf("not one clean sentence: %q", got.Message)
			}
		})
	}
}

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{
		"Bearer abcdefgh12345 was refused": "Bearer *** was refused",
		"CRD x.":                           "CRD x",
		"":                                 "",
		"see https://a:b@c/d":              "see https://***@c/d",
	} {
		if got := Sentence(text); !strings.EqualFold(got, want) {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got := Sentence("caf\xe9 " + strings.Repeat("é", 3)[:5]); !utf8.ValidString(got) || !strings.HasPrefix(got, "caf") {
		t.Errorf("got %q", got)
	}
	if got := Sentence(strings.Repeat("é", maxMessage)); len(got) > maxMessage+4 || !strings.HasSuffix(got, "é…") {
		t.Errorf("cut to %d bytes, ending %q", len(got), got[len(got)-8:])
	}
}
