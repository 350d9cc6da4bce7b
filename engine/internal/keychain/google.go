package keychain

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/oauth2"
	googleauth "golang.org/x/oauth2/google"
)

// googleScope is enough to read charts in Artifact Registry and GCR.
const googleScope = "https://www.googleapis.com/auth/cloud-platform.read-only"

// googleUser tells Google's registries that the password is an access token.
const googleUser = "oauth2accesstoken"

// askGoogle gives an access token of the application default credentials.
func askGoogle(ctx context.Context, client *http.Client, _ registry) (Credential, time.Time, error) {
	if client != nil {
		ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	}
	found, err := googleauth.FindDefaultCredentials(ctx, googleScope)
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	token, err := found.TokenSource.Token()
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	return Credential{googleUser, token.AccessToken}, token.Expiry, nil
}
