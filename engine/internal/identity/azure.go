package identity

import (
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// azureSource asks Entra for tokens of the cluster's server application. The library caches inside a credential,
// so each question gets a new one.
func azureSource(server string, credential func() (azcore.TokenCredential, error)) Source {
	return func(ctx context.Context) (Token, error) {
		asks, err := credential()
		if err != nil {
			return Token{}, err
		}
		got, err := asks.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{server + "/.default"}})
		if err != nil {
			return Token{}, err
		}
		return Token{Value: got.Token, Expiry: got.ExpiresOn}, nil
	}
}

// azureOptions makes the library ask once: the callers decide when to try again.
func (r Request) azureOptions() azcore.ClientOptions {
	return azcore.ClientOptions{Transport: r.client, Retry: policy.RetryOptions{MaxRetries: -1}}
}

// serverID reads `--server-id` of the kubelogin command in the kubeconfig, without running it.
func (r Request) serverID(otherwise string) (string, error) {
	if r.Exec == nil || len(r.Exec.Args) == 0 {
		return "", r.invalid("needs a kubeconfig with the exec section of kubelogin")
	}
	server := otherwise
	for i, arg := range r.Exec.Args {
		if value, ok := strings.CutPrefix(arg, "--server-id="); ok {
			server = value
		} else if arg == "--server-id" && i+1 < len(r.Exec.Args) {
			server = r.Exec.Args[i+1]
		}
	}
	if server == "" {
		return "", r.invalid("finds no --server-id in the kubeconfig's exec section")
	}
	return server, nil
}
