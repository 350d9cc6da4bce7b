// Package identity logs in to clusters the way their clouds want it: with short-lived bearer tokens.
//
// Each identity of a ProviderConfig has a file and a row in the table below. It reads its own credentials and
// parameters and gives a Source; everything else (caching, early refresh, replacing a refused token) is shared.
// The rules to keep: no program named in a kubeconfig is ever run, and no message repeats a credential.
package identity

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// Names of the identities, as in a ProviderConfig's spec.identity.type.
const (
	google           = "GoogleApplicationCredentials"
	azurePrincipal   = "AzureServicePrincipalCredentials"
	azureWorkload    = "AzureWorkloadIdentityCredentials"
	awsWebIdentity   = "AWSWebIdentityCredentials"
	upboundTokens    = "UpboundTokens"
	nebiusServiceKey = "NebiusServiceAccountCredentials"
)

// known is every identity. A row is given a request whose name is its own.
var known = map[string]func(Request) (Source, error){
	google:           newGoogle,
	azurePrincipal:   newAzurePrincipal,
	azureWorkload:    newAzureWorkload,
	awsWebIdentity:   newAWS,
	upboundTokens:    newUpbound,
	nebiusServiceKey: newNebius,
}

// Request is what an identity is made from.
type Request struct {
	Name        string
	Credentials []byte // what the Secret (or file, or variable) holds; empty with Injected
	Injected    bool   // use what the machine itself has
	// Trusted credentials are the operator's: they may name files of this machine and endpoints of their own.
	// Anybody else could use those to send this machine's secrets elsewhere.
	Trusted bool

	// Exec is how the kubeconfig would have got a token. It is only read.
	Exec *clientcmdapi.ExecConfig
	// ClusterName is what the kubeconfig's context calls its cluster.
	ClusterName string

	// Client asks for the tokens; nil is the usual one. Tests answer the clouds' addresses with it.
	Client *http.Client

	client  *http.Client // made of Client by New
	witness *witness
}

// New makes the tokens of an identity. Nothing is asked for yet: the token service need not be reachable.
func New(request Request) (*Tokens, error) {
	build, ok := known[request.Name]
	if !ok {
		return nil, fault.New(enginev1.Fault_INVALID, "the identity type is not known: use one of %s",
			strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	request.watch()
	source, err := build(request)
	if err != nil {
		return nil, err
	}
	return newTokens(source, request), nil
}

// needCredentials refuses what cannot be answered from the machine: upstream knows no injected form of these.
func (r Request) needCredentials() error {
	if r.Injected {
		return r.invalid("cannot use InjectedIdentity as its source: give its credentials in a Secret")
	}
	if len(r.Credentials) == 0 {
		return r.invalid("has no credentials: the key its source names is empty")
	}
	return nil
}

// decode reads credentials that are a JSON object. The decoder's message may quote them, so it is dropped.
func (r Request) decode(into any) error {
	if err := r.needCredentials(); err != nil {
		return err
	}
	if err := json.Unmarshal(r.Credentials, into); err != nil {
		return r.invalid("has credentials that are not the JSON object it needs")
	}
	return nil
}

func (r Request) invalid(format string, args ...any) error {
	return fault.New(enginev1.Fault_INVALID, "the identity "+r.Name+" "+format, args...)
}

// watch makes the client tokens are asked for with. It follows no redirect: credentials go where they are meant to.
func (r *Request) watch() {
	client := http.Client{Timeout: askTimeout}
	if r.Client != nil {
		client = *r.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if client.Transport == nil {
		client.Transport = http.DefaultTransport
	}
	r.witness = &witness{next: client.Transport}
	client.Transport = r.witness
	r.client = &client
}
