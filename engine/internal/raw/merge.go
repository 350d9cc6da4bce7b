package raw

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// usualObject bounds what is made room for before it has come: a header may say anything.
const usualObject = 64 << 10

// Merge sends a merge patch: the most frequent write there is, of a status. It goes past the library's tracing, retries
// and content negotiation, which cost a tenth of the engine's part of it. Where the server asks for patience, the library
// tries again as it does everywhere.
func Merge(ctx context.Context, client *http.Client, request *rest.Request, patch []byte) ([]byte, error) {
	answer, err := client.Do(mergeRequest(ctx, request, patch))
	if err != nil {
		return nil, fault.FromAPI(err)
	}
	object := bytes.NewBuffer(make([]byte, 0, min(max(answer.ContentLength, 0), usualObject)+bytes.MinRead))
	_, err = object.ReadFrom(answer.Body)
	_ = answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusOK && err == nil:
		return object.Bytes(), nil
	case answer.StatusCode == http.StatusOK:
		return nil, fault.FromAPI(err)
	}
	wait, asked := patience(answer)
	if !asked {
		return nil, fault.FromAPI(refusal(answer.StatusCode, object.Bytes()))
	}
	select {
	case <-time.After(wait):
		return Do(ctx, request.Body(patch))
	case <-ctx.Done():
		return nil, fault.FromAPI(ctx.Err())
	}
}

func mergeRequest(ctx context.Context, request *rest.Request, patch []byte) *http.Request {
	direct := &http.Request{
		Method: http.MethodPatch, URL: request.URL(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Accept": {jsonType}, "Content-Type": {string(types.MergePatchType)}},
		Body:          io.NopCloser(bytes.NewReader(patch)),
		GetBody:       func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(patch)), nil },
		ContentLength: int64(len(patch)),
	}
	return direct.WithContext(ctx)
}

// patience is what the server asks for before the next try, by the library's own rule.
func patience(answer *http.Response) (time.Duration, bool) {
	seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	busy := answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= http.StatusInternalServerError
	return time.Duration(seconds) * time.Second, busy && err == nil
}

// refusal is the API server's own error, or what can be told of whoever answered in its place.
func refusal(code int, body []byte) error {
	status := metav1.Status{}
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Status == metav1.StatusFailure {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return apierrors.NewGenericServerResponse(code, "patch", schema.GroupResource{}, "", string(body), 0, true)
}
