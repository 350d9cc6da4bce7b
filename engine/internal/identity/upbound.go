package identity

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	upboundAddress = "https://auth.upbound.io/apis/tokenexchange.upbound.io/v1alpha1/orgscopedtokens"
	execV1         = "client.authentication.k8s.io/v1"
	organization   = "ORGANIZATION"
)

// newUpbound exchanges a session or robot token for one of the organisation the kubeconfig names.
func newUpbound(request Request) (Source, error) {
	if err := request.needCredentials(); err != nil {
		return nil, err
	}
	owner, err := request.upboundOrganization()
	if err != nil {
		return nil, err
	}
	// A Secret written as stringData often ends in a line break.
	subject := strings.TrimSpace(string(request.Credentials))
	if !isToken(subject) {
		return nil, request.invalid("has credentials that are not a token")
	}
	form := url.Values{
		"audience":           {"upbound:spaces:api", "upbound:spaces:controlplanes"},
		"grant_type":         {grantExchange},
		"subject_token_type": {typeIDToken},
		"subject_token":      {subject},
		"scope":              {"upbound:org:" + owner},
	}
	return func(ctx context.Context) (Token, error) {
		return request.exchange(ctx, upboundAddress, form, http.Header{"Authorization": {"Bearer " + subject}})
	}, nil
}

// upboundOrganization reads the command `up organization token NAME` without running it. The variable wins over the
// argument, as it does in that command.
func (r Request) upboundOrganization() (string, error) {
	exec := r.Exec
	if exec == nil {
		return "", r.invalid("needs a kubeconfig with an exec section")
	}
	if exec.APIVersion != execV1 {
		return "", r.invalid("needs an exec section of %s in the kubeconfig", execV1)
	}
	args := exec.Args
	if exec.Command != "up" || len(args) < 2 || !slices.Contains([]string{"org", "organization"}, args[0]) || args[1] != "token" {
		return "", r.invalid("needs a kubeconfig whose exec section is `up organization token`")
	}
	name := ""
	if len(args) > 2 {
		name = args[2]
	}
	for _, variable := range exec.Env {
		if variable.Name == organization {
			name = variable.Value
			break
		}
	}
	if name == "" {
		return "", r.invalid("finds no organization: name it in the kubeconfig's exec section, as third argument or in %s", organization)
	}
	return name, nil
}
