package raw

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// Merge sends a merge patch: the most frequent write there is, of a status. One that simply succeeds goes past the
// library's tracing, retries and content negotiation, which cost a tenth of the engine's part of it. Any other answer is
// the library's to judge, to wait for and to explain, so the same request is made through it: what was refused has
// changed nothing.
func Merge(ctx context.Context, client *http.Client, request *rest.Request, patch []byte) ([]byte, error) {
	direct := &http.Request{
		Method: http.MethodPatch, URL: request.URL(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Accept": {jsonType}, "Content-Type": {string(types.MergePatchType)}},
		Body:          io.NopCloser(bytes.NewReader(patch)),
		GetBody:       func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(patch)), nil },
		ContentLength: int64(len(patch)),
	}
	answer, err := client.Do(direct.WithContext(ctx))
	if err != nil {
		return nil, fault.FromAPI(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return Do(ctx, request.Body(patch))
	}
	// A buffer asks for so much room before it reads, even where nothing follows.
	object := bytes.NewBuffer(make([]byte, 0, max(answer.ContentLength, 0)+bytes.MinRead))
	if _, err := object.ReadFrom(answer.Body); err != nil {
		return nil, fault.FromAPI(err)
	}
	return object.Bytes(), nil
}
