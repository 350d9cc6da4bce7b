package identity

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

const (
	// azureTokens is where Azure's webhook mounts the tokens of workload identities, in every pod.
	azureTokens       = "/var/run/secrets/azure/tokens"
	azureTokenFile    = "AZURE_FEDERATED_TOKEN_FILE"
	azureAuthorityEnv = "AZURE_AUTHORITY_HOST"
)

// newAzureWorkload logs in with a token the pod has been given. What the credentials leave out, the library takes
// from the variables that Azure's webhook sets.
func newAzureWorkload(request Request) (Source, error) {
	var who struct {
		ClientID           string `json:"clientId"`
		TenantID           string `json:"tenantId"`
		ServerID           string `json:"serverId"`
		FederatedTokenFile string `json:"federatedTokenFile"`
		AuthorityHost      string `json:"authorityHost"`
	}
	if err := request.decode(&who); err != nil {
		return nil, err
	}
	server, err := request.serverID(who.ServerID)
	if err != nil {
		return nil, err
	}
	if err := request.checkWorkload(who.FederatedTokenFile, who.AuthorityHost); err != nil {
		return nil, err
	}
	build := func() (azcore.TokenCredential, error) {
		options := request.azureOptions()
		if who.AuthorityHost != "" {
			options.Cloud = cloud.Configuration{ActiveDirectoryAuthorityHost: who.AuthorityHost}
		}
		return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
			ClientOptions: options,
			ClientID:      who.ClientID,
			TenantID:      who.TenantID,
			TokenFilePath: who.FederatedTokenFile,
		})
	}
	if _, err := build(); err != nil {
		return nil, request.invalid("needs clientId, tenantId and federatedTokenFile (and an https authorityHost, if any) " +
			"in its credentials or from Azure's webhook")
	}
	return azureSource(server, build), nil
}

// checkWorkload keeps strangers from sending files of this machine to places of their choice: only the tokens meant
// for this, only to Azure.
func (r Request) checkWorkload(file, authority string) error {
	if r.Trusted {
		return nil
	}
	if file != "" && file != os.Getenv(azureTokenFile) && filepath.Dir(filepath.Clean(file)) != azureTokens {
		return r.invalid("has a federatedTokenFile that is not allowed here: "+
			"use the one in %s, or have the operator allow files", azureTokens)
	}
	if authority != "" && !isAzure(authority) {
		return r.invalid("has an authorityHost that is not one of Azure's: leave it out, or have the operator allow it")
	}
	return nil
}

func isAzure(authority string) bool {
	hosts := []string{
		cloud.AzurePublic.ActiveDirectoryAuthorityHost,
		cloud.AzureGovernment.ActiveDirectoryAuthorityHost,
		cloud.AzureChina.ActiveDirectoryAuthorityHost,
		"https://login.microsoft.com",
		"https://login.partner.microsoftonline.cn",
		os.Getenv(azureAuthorityEnv),
	}
	at, err := url.Parse(authority)
	if err != nil || at.Host == "" {
		return false
	}
	for _, host := range hosts {
		if host != "" && strings.TrimRight(authority, "/") == strings.TrimRight(host, "/") {
			return true
		}
	}
	return false
}
