package helm

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rehearse makes every write a dry run. Helm can do that itself only where it applies on the server's side, and
// a comparison must go the very way an apply goes.
func rehearse(next http.RoundTripper) http.RoundTripper { return rehearsing{next} }

type rehearsing struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r rehearsing) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet || request.Method == http.MethodHead {
		return r.next.RoundTrip(request)
	}
	dry := request.Clone(request.Context())
	query := dry.URL.Query()
	query.Set("dryRun", metav1.DryRunAll)
	dry.URL.RawQuery = query.Encode()
	return r.next.RoundTrip(dry)
}
