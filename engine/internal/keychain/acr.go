package keychain

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/golang-jwt/jwt/v5"
)

const (
	acrScope = "https://containerregistry.azure.net/.default"
	// acrUser tells ACR that the password is a refresh token.
	acrUser = "00000000-0000-0000-0000-000000000000"
	// acrLife is what is believed of a refresh token that does not say how long it is good; it is good for hours.
	acrLife   = 30 * time.Minute
	maxAnswer = 1 << 20
)

// askACR exchanges a token of Entra for the registry's own. The registry is asked itself: that it is Azure's is known
// by its name, and by the certificate that the client verifies.
func askACR(ctx context.Context, client *http.Client, at registry) (Credential, time.Time, error) {
	if client == nil {
		client = &http.Client{Timeout: askTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	login, err := azureIdentity(client)
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	token, err := login.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{acrScope}})
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	refresh, err := exchange(ctx, client, at.host, token.Token)
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	return Credential{acrUser, refresh}, expiry(refresh), nil
}

// azureIdentity is what a pod or machine of Azure's has: variables, a workload identity, a managed identity.
func azureIdentity(client *http.Client) (azcore.TokenCredential, error) {
	options := azcore.ClientOptions{Transport: client, Retry: policy.RetryOptions{MaxRetries: -1}}
	if os.Getenv("AZURE_FEDERATED_TOKEN_FILE") != "" {
		return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: options})
	}
	if os.Getenv("AZURE_CLIENT_SECRET") != "" || os.Getenv("AZURE_CLIENT_CERTIFICATE_PATH") != "" {
		return azidentity.NewEnvironmentCredential(&azidentity.EnvironmentCredentialOptions{ClientOptions: options})
	}
	managed := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: options}
	if id := os.Getenv("AZURE_CLIENT_ID"); id != "" {
		managed.ID = azidentity.ClientID(id)
	}
	return azidentity.NewManagedIdentityCredential(managed)
}

func exchange(ctx context.Context, client *http.Client, host, token string) (string, error) {
	form := url.Values{"grant_type": {"access_token"}, "service": {host}, "access_token": {token}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+host+"/oauth2/exchange", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", &answered{response.StatusCode}
	}
	var got struct {
		RefreshToken string `json:"refresh_token"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&got); err != nil || got.RefreshToken == "" {
		return "", errors.New("ACR answers without a token")
	}
	return got.RefreshToken, nil
}

// expiry reads when a token ends; only the registry can judge whether it is genuine.
func expiry(token string) time.Time {
	claims := jwt.RegisteredClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(token, &claims); err == nil && claims.ExpiresAt != nil {
		return claims.ExpiresAt.Time
	}
	return time.Now().Add(acrLife)
}
