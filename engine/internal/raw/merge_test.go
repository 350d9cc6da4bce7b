package raw

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const body = `{"status":{"summary":"4/4"}}`

func merge(ctx context.Context, t *testing.T, handler http.HandlerFunc) (string, error) {
	t.Helper()
	made := client(t, handler).(*rest.RESTClient)
	request := made.Patch(types.MergePatchType).AbsPath("/apis/example.com/v1/things/one/status").Param("fieldManager", "us")
	object, err := Merge(ctx, made.Client, request, []byte(body))
	return string(object), err
}

func TestAMergePatchIsSentOnceAndWhole(t *testing.T) {
	long := `{"kind":"Thing","data":"` + strings.Repeat("x", 100_000) + `"}`
	for name, answer := range map[string]string{"short": `{"kind":"Thing"}`, "long": long} {
		var asked atomic.Int32
		object, err := merge(t.Context(), t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			sent, _ := io.ReadAll(r.Body)
			said := fmt.Sprintln(r.Method, r.URL.String(), r.Header.Get("Content-Type"), r.Header.Get("Accept"), string(sent))
			want := fmt.Sprintln("PATCH", "/apis/example.com/v1/things/one/status?fieldManager=us",
				"application/merge-patch+json", "application/json", body)
			if said != want {
				t.Errorf("%s: %q, not %q", name, said, want)
			}
			_, _ = io.WriteString(w, answer)
		})
		if err != nil || object != answer || asked.Load() != 1 {
			t.Errorf("%s: asked %d times, %d bytes, %v", name, asked.Load(), len(object), err)
		}
	}
}

func TestWhatIsRefusedIsTheLibrarysToExplain(t *testing.T) {
	_, err := merge(t.Context(), t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"the object has been modified"}`)
	})
	var said *fault.Error
	if !errors.As(err, &said) || said.Kind != enginev1.Fault_CONFLICT || said.Message != "the object has been modified" {
		t.Errorf("a refusal became %v", err)
	}
}

func TestAServerThatAsksForPatienceGetsIt(t *testing.T) {
	var asked atomic.Int32
	object, err := merge(t.Context(), t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		if sent, _ := io.ReadAll(r.Body); string(sent) != body {
			t.Errorf("the last one sent %q", sent)
		}
		_, _ = io.WriteString(w, `{}`)
	})
	if err != nil || object != `{}` || asked.Load() != 3 {
		t.Errorf("asked %d times: %q, %v", asked.Load(), object, err)
	}
}

func TestACancelledMergePatchIsCalledThat(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := merge(ctx, t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does a server notice that its client has left
		cancel()
		<-r.Context().Done()
	})
	var said *fault.Error
	if !errors.As(err, &said) || said.Kind != enginev1.Fault_CANCELLED {
		t.Errorf("a cancelled call became %v", err)
	}
}
