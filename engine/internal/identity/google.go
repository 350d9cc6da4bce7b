package identity

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"
	googleauth "golang.org/x/oauth2/google"
)

// googleScopes are what GKE asks for: the API, and the e-mail address its RBAC rules name.
var googleScopes = []string{
	"https://www.googleapis.com/auth/cloud-platform",
	"https://www.googleapis.com/auth/userinfo.email",
}

// newGoogle takes a JSON key, an access token as it is, or what the machine has (application default credentials).
func newGoogle(request Request) (Source, error) {
	if request.Injected {
		return func(ctx context.Context) (Token, error) {
			found, err := googleauth.FindDefaultCredentials(request.oauthContext(ctx), googleScopes...)
			if err != nil {
				return Token{}, err
			}
			return googleToken(found)
		}, nil
	}
	if err := request.needCredentials(); err != nil {
		return nil, err
	}
	text := strings.TrimSpace(string(request.Credentials))
	if !strings.HasPrefix(text, "{") {
		if !isToken(text) {
			return nil, request.invalid("has credentials that are neither a JSON key nor an access token")
		}
		return func(context.Context) (Token, error) { return Token{Value: text}, nil }, nil
	}
	var key googleKey
	if err := request.decode(&key); err != nil {
		return nil, err
	}
	if err := request.checkGoogle(&key); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (Token, error) {
		read, err := googleauth.CredentialsFromJSONWithType(request.oauthContext(ctx), request.Credentials, key.Type, googleScopes...)
		if err != nil {
			return Token{}, err
		}
		return googleToken(read)
	}, nil
}

func googleToken(credentials *googleauth.Credentials) (Token, error) {
	got, err := credentials.TokenSource.Token()
	if err != nil {
		return Token{}, err
	}
	return Token{Value: got.AccessToken, Expiry: got.Expiry}, nil
}

// oauthContext is the library's way to be given a client.
func (r Request) oauthContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, r.client)
}

// googleKey is the part of a key file that says where it leads.
type googleKey struct {
	Type          googleauth.CredentialsType `json:"type"`
	TokenURI      string                     `json:"token_uri"`
	TokenURL      string                     `json:"token_url"`
	Impersonation string                     `json:"service_account_impersonation_url"`
	Source        *googleKey                 `json:"source_credentials"`
}

// googleTypes carry all they need in themselves. external_account is not among them: it names files, addresses and
// programs of this machine to read a secret from, and an address to send it to.
var googleTypes = []googleauth.CredentialsType{
	googleauth.ServiceAccount,
	googleauth.AuthorizedUser,
	googleauth.ExternalAccountAuthorizedUser,
	googleauth.ImpersonatedServiceAccount,
}

func (r Request) checkGoogle(key *googleKey) error {
	if key.Type == "" {
		return r.invalid("has a JSON key without a type")
	}
	if r.Trusted {
		return nil
	}
	if !slices.Contains(googleTypes, key.Type) {
		return r.invalid("has a JSON key of a type that is not allowed here: use service_account, authorized_user, " +
			"external_account_authorized_user or impersonated_service_account, or have the operator allow such credentials")
	}
	for _, address := range []string{key.TokenURI, key.TokenURL, key.Impersonation} {
		if !isGoogle(address) {
			return r.invalid("has a JSON key with an address that is not Google's: " +
				"use the key as Google gave it, or have the operator allow such credentials")
		}
	}
	if key.Source != nil {
		return r.checkGoogle(key.Source)
	}
	return nil
}

func isGoogle(address string) bool {
	if address == "" {
		return true // the library's default
	}
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "https" || at.User != nil {
		return false
	}
	host := at.Hostname()
	return host == "accounts.google.com" || strings.HasSuffix(host, ".googleapis.com")
}

// isToken tells whether a text can be a bearer token at all (RFC 6750): it becomes part of a header.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool {
		return c <= ' ' || c > '~' || c == '"' || c == '\\' || c == ','
	})
}
