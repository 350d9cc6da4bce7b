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
	"time"

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

func TestARefusalIsToldInTheServersWordsAndOnce(t *testing.T) {
	said := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"the object has been modified"}`
	for _, one := range []struct {
		code                 int
		after, answer, words string
		kind                 fault.Kind
	}{
		{http.StatusConflict, "", said, "the object has been modified", enginev1.Fault_CONFLICT},
		{http.StatusConflict, "60", said, "the object has been modified", enginev1.Fault_CONFLICT},
		{http.StatusBadGateway, "", "<html>no</html>", "an error on the server", enginev1.Fault_UNREACHABLE},
		{http.StatusBadGateway, "Fri, 31 Dec 1999 23:59:59 GMT", "", "an error on the server", enginev1.Fault_UNREACHABLE},
	} {
		var asked atomic.Int32
		_, err := merge(t.Context(), t, func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.Header().Set("Retry-After", one.after)
			w.WriteHeader(one.code)
			_, _ = io.WriteString(w, one.answer)
		})
		var told *fault.Error
		if !errors.As(err, &told) || told.Kind != one.kind || !strings.Contains(told.Message, one.words) || asked.Load() != 1 {
			t.Errorf("%d, asked %d times, became %v", one.code, asked.Load(), err)
		}
	}
}

func TestAServerThatAsksForPatienceGetsIt(t *testing.T) {
	var asked atomic.Int32
	var refused time.Time
	object, err := merge(t.Context(), t, func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		if asked.Add(1) == 1 {
			refused = time.Now()
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		if since := time.Since(refused); since < time.Second || string(sent) != body {
			t.Errorf("%q was sent after %s", sent, since)
		}
		_, _ = io.WriteString(w, `{}`)
	})
	if err != nil || object != `{}` || asked.Load() != 2 {
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
