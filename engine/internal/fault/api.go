package fault

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

var (
	namespaceMissing = regexp.MustCompile(`^namespaces "[^"]*" not found$`)
	// An authoriser's "no" names a user; every other 403 about an object is an admission plugin's "no".
	authorizer = regexp.MustCompile(`(?i)user "[^"]*" (\(groups=.*\) )?(cannot|is attempting)|attempting to grant`)
	admission  = regexp.MustCompile(`(?i)admission webhook|admissionpolicy| is forbidden: `)
)

// FromAPI maps an error of the Kubernetes client, or of the network below it, to a fault.
func FromAPI(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, context.Canceled):
		return Wrap(enginev1.Fault_CANCELLED, err, "the call was cancelled")
	case errors.As(err, &status):
		return fromStatus(err, status.Status())
	case meta.IsNoMatchError(err):
		return Wrap(enginev1.Fault_REJECTED, err, "%s", err.Error())
	case isNetwork(err):
		return fromNetwork(err)
	case discovery.IsGroupDiscoveryFailedError(err):
		return Wrap(enginev1.Fault_UNREACHABLE, err, "%s", err.Error())
	}
	return Wrap(enginev1.Fault_UNKNOWN, err, "%s", err.Error())
}

// fromStatus reads the API server's own answer.
func fromStatus(err error, status metav1.Status) *Error {
	message := status.Message
	if message == "" {
		message = err.Error()
	}
	e := Wrap(statusKind(err, status), err, "%s", message)
	e.HTTPStatus = status.Code
	return e
}

func statusKind(err error, status metav1.Status) Kind {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return enginev1.Fault_NAMESPACE_TERMINATING
	case status.Reason == metav1.StatusReasonAlreadyExists:
		return enginev1.Fault_ALREADY_EXISTS
	case status.Code == http.StatusNotFound || status.Reason == metav1.StatusReasonNotFound:
		if namespaceMissing.MatchString(status.Message) {
			return enginev1.Fault_NAMESPACE_MISSING
		}
		return enginev1.Fault_NOT_FOUND
	case status.Code == http.StatusConflict:
		return enginev1.Fault_CONFLICT
	case status.Code == http.StatusUnauthorized:
		return enginev1.Fault_UNAUTHORIZED
	case status.Code == http.StatusForbidden:
		if admission.MatchString(status.Message) && !authorizer.MatchString(status.Message) {
			return enginev1.Fault_REJECTED
		}
		return enginev1.Fault_FORBIDDEN
	case status.Code == http.StatusTooManyRequests || status.Code > http.StatusInternalServerError:
		// The API server, or a proxy before it, asks to come again: no answer yet.
		return enginev1.Fault_UNREACHABLE
	case status.Code == http.StatusGone:
		return enginev1.Fault_UNKNOWN
	case status.Code >= 400 && status.Code < 500:
		return enginev1.Fault_REJECTED
	}
	return enginev1.Fault_UNKNOWN
}

// isNetwork tells whether no API server answered at all.
func isNetwork(err error) bool {
	var (
		urlErr    *url.Error
		netErr    net.Error
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
	)
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.As(err, &urlErr) || errors.As(err, &netErr) || errors.As(err, &authority) ||
		errors.As(err, &hostname) || errors.As(err, &invalid) || errors.As(err, &verify)
}

func fromNetwork(err error) *Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return Wrap(enginev1.Fault_UNREACHABLE, err, "the API server did not answer in time")
	}
	var urlErr *url.Error
	if !errors.As(err, &urlErr) {
		return Wrap(enginev1.Fault_UNREACHABLE, err, "the API server does not answer: %v", err)
	}
	// A credential plugin failed: the server was never asked.
	if inner := urlErr.Err.Error(); strings.HasPrefix(inner, "getting credentials") {
		return Wrap(enginev1.Fault_UNAUTHORIZED, err, "%s", inner)
	}
	host := "the API server"
	if at, parseErr := url.Parse(urlErr.URL); parseErr == nil && at.Host != "" {
		host += " at " + at.Host
	}
	return Wrap(enginev1.Fault_UNREACHABLE, err, "%s does not answer: %v", host, urlErr.Err)
}
