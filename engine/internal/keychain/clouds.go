package keychain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/aws/smithy-go"
	"golang.org/x/oauth2"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// clouds are the registries known here. A host must match as a whole: a name that only ends like one is a stranger's.
var clouds = []struct {
	name  string
	hosts *regexp.Regexp
	ask   source
}{
	{"AWS", regexp.MustCompile(`^(\d{12})\.dkr[.-]ecr(-fips)?\.([a-z0-9-]+)\.` +
		`(?:amazonaws\.com|amazonaws\.com\.cn|amazonaws\.eu|on\.aws|on\.amazonwebservices\.com\.cn|c2s\.ic\.gov|sc2s\.sgov\.gov)$`), askECR},
	{"Google", regexp.MustCompile(`^(?:gcr\.io|[a-z0-9-]+\.gcr\.io|[a-z0-9-]+\.pkg\.dev)$`), askGoogle},
	{"Azure", regexp.MustCompile(`^[a-z0-9-]+(?:\.[a-z0-9-]+)?\.azurecr\.(?:io|us|cn|de)$`), askACR},
}

// answered is what a token service said, where a library does not say it in a type of its own.
type answered struct{ status int }

func (a *answered) Error() string { return fmt.Sprintf("HTTP %d", a.status) }

// plainCode is what an error code looks like; anything else in its place may be anything.
var plainCode = regexp.MustCompile(`^[A-Za-z_]{1,64}$`)

// explain makes one sentence of a library's error. Their messages hold whole answers, so only codes are taken.
func explain(at registry, err error) error {
	return fault.Wrap(enginev1.Fault_CHART_UNAVAILABLE, err, "this machine's %s identity gives no credentials for %s: %s",
		at.cloud, at.host, reason(err))
}

func reason(err error) string {
	var (
		said    *answered
		api     smithy.APIError
		oauth   *oauth2.RetrieveError
		entra   *azidentity.AuthenticationFailedError
		missing interface{ NonRetriable() }
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "the token service does not answer"
	case errors.As(err, &said):
		return said.Error()
	case errors.As(err, &api):
		return coded("refused", api.ErrorCode())
	case errors.As(err, &oauth):
		return coded(statusOf(oauth.Response), oauth.ErrorCode)
	case errors.As(err, &entra):
		return statusOf(entra.RawResponse)
	case errors.As(err, &missing):
		return "it has none"
	}
	return "it has none, or its token service does not answer"
}

func coded(text, code string) string {
	if plainCode.MatchString(code) {
		return text + " " + code
	}
	return text
}

func statusOf(response *http.Response) string {
	if response == nil {
		return "the token service does not answer"
	}
	return fmt.Sprintf("HTTP %d", response.StatusCode)
}
