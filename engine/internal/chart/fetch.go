package chart

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// got is an HTTP answer; a nil body means "not changed".
type got struct {
	body       []byte
	validators Validators
}

// overHTTP fetches one URL with the request's credentials; known makes it conditional.
func overHTTP(ctx context.Context, a *Ask, target *url.URL, known Validators, limit int64) (got, error) {
	request, err := a.request(ctx, target, known)
	if err != nil {
		return got{}, err
	}
	client, err := a.Network.Client(a.ChartSource)
	if err != nil {
		return got{}, err
	}
	where := shown(target.String())
	response, err := client.Do(request)
	if err != nil {
		return got{}, silent(where, err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotModified {
		return got{validators: known}, nil
	}
	if err := statusFault(response.StatusCode, target.String()); err != nil {
		return got{}, err
	}
	if response.ContentLength > limit {
		return got{}, invalid("%s is larger than %d MiB", where, limit>>20)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return got{}, unavailable("%s broke off: %s", where, reason(err))
	}
	if int64(len(body)) > limit {
		return got{}, invalid("%s is larger than %d MiB", where, limit>>20)
	}
	return got{body, validatorsOf(response.Header)}, nil
}

// silent says why there is no answer. What the egress guard refuses is the user's mistake, in the guard's own words.
func silent(where string, err error) error {
	var refusal *fault.Error
	if errors.Is(err, egress.ErrRefused) && errors.As(err, &refusal) {
		return refusal
	}
	return unavailable("%s does not answer: %s", where, reason(err))
}

// validatorsOf reads what the answer can be known by. A time of change counts whole seconds: of what changed just
// before it was sent it cannot be said that it did not change again.
func validatorsOf(header http.Header) Validators {
	out := Validators{ETag: header.Get("ETag")}
	changed, err := http.ParseTime(header.Get("Last-Modified"))
	sent, other := http.ParseTime(header.Get("Date"))
	if err == nil && other == nil && sent.Sub(changed) > time.Second {
		out.Modified = header.Get("Last-Modified")
	}
	return out
}

func (a *Ask) request(ctx context.Context, target *url.URL, known Validators) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, bare(target), nil)
	if err != nil {
		return nil, invalid("%s is not a usable URL", shown(target.String()))
	}
	request.Header.Set("User-Agent", "pilothouse-engine")
	if strings.HasSuffix(target.Path, "gz") {
		// Some servers call an archive's own compression a transfer's; it must arrive as it is.
		request.Header.Set("Accept-Encoding", "identity")
	}
	if known.ETag != "" {
		request.Header.Set("If-None-Match", known.ETag)
	} else if known.Modified != "" {
		request.Header.Set("If-Modified-Since", known.Modified)
	}
	who, err := loginFor(a.ChartSource, target)
	if err != nil {
		return nil, err
	}
	who.apply(request)
	return request, nil
}

func statusFault(code int, target string) error {
	switch {
	case code == http.StatusOK:
		return nil
	case code == http.StatusNotFound || code == http.StatusGone:
		return notFound("%s does not exist (HTTP %d)", shown(target), code)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return unavailable("%s refused the credentials (HTTP %d)", shown(target), code)
	default:
		return unavailable("%s answered HTTP %d", shown(target), code)
	}
}

func bare(u *url.URL) string {
	without := *u
	without.User = nil
	return without.String()
}

// reason is why a request failed, without the URL (it may carry secrets) and in few words.
func reason(err error) string {
	if errors.Is(err, errIdle) {
		return errIdle.Error()
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		if wrapped.Timeout() {
			return "timed out"
		}
		err = wrapped.Err
	}
	if errors.Is(err, context.Canceled) {
		return "cancelled"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "timed out"
	}
	return strings.TrimSpace(oneLine(err.Error()))
}
