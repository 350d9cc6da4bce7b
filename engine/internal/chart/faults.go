package chart

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

func invalid(format string, args ...any) error {
	return &fault.Error{Kind: enginev1.Fault_CHART_INVALID, Message: fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &fault.Error{Kind: enginev1.Fault_CHART_NOT_FOUND, Message: fmt.Sprintf(format, args...)}
}

func unavailable(format string, args ...any) error {
	return &fault.Error{Kind: enginev1.Fault_CHART_UNAVAILABLE, Message: fmt.Sprintf(format, args...)}
}

func unknown(digest string) error {
	return &fault.Error{Kind: enginev1.Fault_UNKNOWN_CHART, Message: fmt.Sprintf("chart %s is not in the cache: resolve it again", digest)}
}

// shown is a URL fit for messages: credentials hide in userinfo and in queries.
func shown(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "the given URL"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return strings.TrimSuffix(u.String(), "/")
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}
