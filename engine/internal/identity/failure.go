package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/oauth2"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// answer is a token service's "no". Its body may repeat what was sent and is never kept.
type answer struct {
	status int
	code   string // an OAuth error code: "invalid_grant"
}

func (a *answer) Error() string { return fmt.Sprintf("HTTP %d %s", a.status, a.code) }

// plainCode is what an error code looks like; anything else in its place may be anything.
var plainCode = regexp.MustCompile(`^[A-Za-z_]{1,64}$`)

// explain makes a fault of a source's error. The libraries put whole response bodies into their messages: only the
// status and the error's code are taken from them.
func (r Request) explain(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return known
	}
	if got := answerIn(err); got != nil {
		detail := fmt.Sprintf("HTTP %d", got.status)
		if plainCode.MatchString(got.code) {
			detail += " " + got.code
		}
		if got.status == http.StatusTooManyRequests || got.status >= http.StatusInternalServerError {
			return fault.New(enginev1.Fault_UNREACHABLE, "the token service of the identity %s is not available: %s", r.Name, detail)
		}
		return fault.New(enginev1.Fault_UNAUTHORIZED, "the token service of the identity %s gives no token: %s", r.Name, detail)
	}
	if reason, ok := r.network(err); ok {
		return fault.New(enginev1.Fault_UNREACHABLE, "the token service of the identity %s does not answer: %s", r.Name, reason)
	}
	if r.Injected {
		// Nothing a user wrote is in it: it says what this machine lacks.
		return fault.New(enginev1.Fault_UNAUTHORIZED, "the identity %s gets no token from this machine: %v", r.Name, err)
	}
	return fault.New(enginev1.Fault_INVALID, "the identity %s has credentials that cannot be used", r.Name)
}

// answerIn finds a token service's answer in the errors of the libraries.
func answerIn(err error) *answer {
	var (
		own    *answer
		oauth  *oauth2.RetrieveError
		azure  *azidentity.AuthenticationFailedError
		amazon *smithyhttp.ResponseError
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &oauth) && oauth.Response != nil:
		return readAnswer(oauth.Response.StatusCode, bytes.NewReader(oauth.Body))
	case errors.As(err, &azure) && azure.RawResponse != nil:
		return readAnswer(azure.RawResponse.StatusCode, azure.RawResponse.Body)
	case errors.As(err, &amazon) && amazon.Response != nil:
		got := &answer{status: amazon.HTTPStatusCode()}
		var api smithy.APIError
		if errors.As(err, &api) {
			got.code = api.ErrorCode()
		}
		return got
	}
	return nil
}

// readAnswer takes the code out of an OAuth error response.
func readAnswer(status int, body io.Reader) *answer {
	got := &answer{status: status}
	var read struct {
		Error any `json:"error"`
	}
	if json.NewDecoder(io.LimitReader(body, maxAnswer)).Decode(&read) == nil {
		got.code, _ = read.Error.(string)
	}
	return got
}

// network tells whether nobody answered, and how.
func (r Request) network(err error) (string, bool) {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time", true
	}
	var (
		urlErr *url.Error
		netErr net.Error
	)
	if errors.As(err, &urlErr) {
		return urlErr.Err.Error(), true // without the URL
	}
	if errors.As(err, &netErr) {
		return netErr.Error(), true
	}
	if seen := r.witness.take(); seen != nil {
		return seen.Error(), true
	}
	return "", false
}

// witness remembers how the last question went: some libraries keep nothing but the words of a network's error.
type witness struct {
	next http.RoundTripper
	mu   sync.Mutex
	err  error
}

func (w *witness) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(request)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	return response, err
}

// take gives what was remembered, once: the next question may fail before anything is sent.
func (w *witness) take() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.err
	w.err = nil
	return err
}
