package identity

import (
	"encoding/base64"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// principal is the Secret of an Azure service principal.
type principal struct {
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
	TenantID     string `json:"tenantId"`
	// ClientCertificate is PEM or base64 of PKCS#12, with its key; of the operator also a file's path.
	ClientCertificate         string `json:"clientCertificate"`
	ClientCertificatePassword string `json:"clientCertificatePassword"`
}

// newAzurePrincipal logs in with a service principal's certificate if there is one, with its secret otherwise.
func newAzurePrincipal(request Request) (Source, error) {
	var who principal
	if err := request.decode(&who); err != nil {
		return nil, err
	}
	server, err := request.serverID("")
	if err != nil {
		return nil, err
	}
	if who.ClientID == "" || who.TenantID == "" || who.ClientSecret == "" && who.ClientCertificate == "" {
		return nil, request.invalid("needs clientId, tenantId and clientSecret or clientCertificate in its credentials")
	}
	build := func() (azcore.TokenCredential, error) {
		return azidentity.NewClientSecretCredential(who.TenantID, who.ClientID, who.ClientSecret,
			&azidentity.ClientSecretCredentialOptions{ClientOptions: request.azureOptions()})
	}
	if who.ClientCertificate != "" {
		if build, err = request.withCertificate(who); err != nil {
			return nil, err
		}
	}
	if _, err := build(); err != nil {
		return nil, request.invalid("has a clientId, tenantId or certificate that cannot be used")
	}
	return azureSource(server, build), nil
}

func (r Request) withCertificate(who principal) (func() (azcore.TokenCredential, error), error) {
	data, err := r.certificate(who.ClientCertificate)
	if err != nil {
		return nil, err
	}
	password := []byte(who.ClientCertificatePassword)
	if isPEM(string(data)) {
		password = nil // the library reads PEM only without one
	}
	chain, key, err := azidentity.ParseCertificates(data, password)
	if err != nil {
		return nil, r.invalid("has a clientCertificate that cannot be read with its password: it needs PEM or PKCS#12, with the key")
	}
	return func() (azcore.TokenCredential, error) {
		return azidentity.NewClientCertificateCredential(who.TenantID, who.ClientID, chain, key,
			&azidentity.ClientCertificateCredentialOptions{ClientOptions: r.azureOptions(), SendCertificateChain: true})
	}, nil
}

func (r Request) certificate(text string) ([]byte, error) {
	if isPEM(text) {
		return []byte(text), nil
	}
	if data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), "")); err == nil {
		return data, nil
	}
	if !r.Trusted {
		return nil, r.invalid("has a clientCertificate that is not the certificate itself: " +
			"put it there as PEM or as base64 of PKCS#12, or have the operator allow files")
	}
	data, err := os.ReadFile(text)
	if err != nil {
		return nil, r.invalid("has a clientCertificate that names a file that cannot be read")
	}
	return data, nil
}

func isPEM(text string) bool { return strings.Contains(text, "-----BEGIN ") }
