package identity

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// azureAround answers what the library asks before it asks for a token: which hosts and addresses there are.
func azureAround(tokens http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		tenant, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		base := "https://" + r.Host + "/" + tenant
		switch {
		case strings.HasSuffix(r.URL.Path, "/discovery/instance"):
			reply(w, map[string]any{
				"tenant_discovery_endpoint": "https://login.microsoftonline.com/tenant/v2.0/.well-known/openid-configuration",
				"metadata": []any{map[string]any{
					"preferred_network": "login.microsoftonline.com", "preferred_cache": "login.windows.net",
					"aliases": []string{"login.microsoftonline.com", "login.windows.net", "login.microsoft.com"},
				}},
			})
		case strings.HasSuffix(r.URL.Path, "/openid-configuration"):
			reply(w, map[string]any{
				"issuer": base + "/v2.0", "authorization_endpoint": base + "/oauth2/v2.0/authorize",
				"token_endpoint": base + "/oauth2/v2.0/token",
			})
		default:
			tokens(w, r)
		}
	}
}

const azureToken = "/tenant/oauth2/v2.0/token"

func checkAzureQuestion(t *testing.T, all *clouds, host string) asked {
	t.Helper()
	question := all.last(t)
	if question.host != host || question.path != azureToken || question.form.Get("client_id") != "client" ||
		question.form.Get("grant_type") != "client_credentials" || !strings.Contains(question.form.Get("scope"), "6dae42f8/.default") {
		t.Fatalf("asked %+v", question)
	}
	if count := all.countOf(azureToken); count != 2 {
		t.Fatalf("asked %d times for two tokens", count)
	}
	return question
}

func TestAzurePrincipalSecret(t *testing.T) {
	for form, exec := range map[string]*clientcmdapi.ExecConfig{
		"two words": kubelogin("--environment", "AzurePublicCloud", "--server-id", "6dae42f8", "--client-id", "x"),
		"one word":  kubelogin("--server-id=6dae42f8"),
	} {
		t.Run(form, func(t *testing.T) {
			all := newClouds(t, azureAround(serial("azure")))
			expect(t, mustNew(t, Request{Name: azurePrincipal, Exec: exec, Client: all.client, Credentials: object(map[string]string{
				"clientId": "client", "tenantId": "tenant", "clientSecret": "hush",
			})}), "azure-1", "azure-2")
			if got := checkAzureQuestion(t, all, "login.microsoftonline.com").form.Get("client_secret"); got != "hush" {
				t.Fatalf("sent the secret %q", got)
			}
		})
	}
}

func TestAzurePrincipalCertificate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "certificate.pem")
	if err := os.WriteFile(file, []byte(certificatePEM(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	for form, row := range map[string]struct {
		certificate string
		trusted     bool
	}{
		"PEM":                 {certificate: certificatePEM(t)},
		"base64":              {certificate: base64.StdEncoding.EncodeToString([]byte(certificatePEM(t)))},
		"the operator's file": {certificate: file, trusted: true},
	} {
		t.Run(form, func(t *testing.T) {
			all := newClouds(t, azureAround(serial("azure")))
			expect(t, mustNew(t, Request{
				Name: azurePrincipal, Exec: kubelogin("--server-id", "6dae42f8"), Client: all.client, Trusted: row.trusted,
				Credentials: object(map[string]string{
					"clientId": "client", "tenantId": "tenant", "clientSecret": "unused",
					"clientCertificate": row.certificate, "clientCertificatePassword": "unused",
				}),
			}), "azure-1", "azure-2")
			key, _ := rsaKey()
			question := checkAzureQuestion(t, all, "login.microsoftonline.com")
			if _, err := jwt.Parse(question.form.Get("client_assertion"), func(*jwt.Token) (any, error) { return key.Public(), nil }); err != nil {
				t.Fatal(err)
			}
			if question.form.Get("client_secret") != "" {
				t.Fatal("the certificate comes first")
			}
		})
	}
}

func TestAzureWorkload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "azure-identity-token")
	if err := os.WriteFile(file, []byte("projected"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(azureTokenFile, file)
	for rule, row := range map[string]struct {
		fields map[string]string
		exec   *clientcmdapi.ExecConfig
		host   string
	}{
		"all given": {
			fields: map[string]string{"clientId": "client", "tenantId": "tenant", "federatedTokenFile": file, "authorityHost": "https://login.microsoftonline.us/"},
			exec:   kubelogin("--server-id", "6dae42f8"), host: "login.microsoftonline.us",
		},
		"the webhook's file": {
			fields: map[string]string{"clientId": "client", "tenantId": "tenant"},
			exec:   kubelogin("--server-id", "6dae42f8"), host: "login.microsoftonline.com",
		},
		"the kubeconfig's server first": {
			fields: map[string]string{"clientId": "client", "tenantId": "tenant", "serverId": "other"},
			exec:   kubelogin("--server-id", "6dae42f8"), host: "login.microsoftonline.com",
		},
		"the Secret's server otherwise": {
			fields: map[string]string{"clientId": "client", "tenantId": "tenant", "serverId": "6dae42f8"},
			exec:   kubelogin("--login", "workloadidentity"), host: "login.microsoftonline.com",
		},
	} {
		t.Run(rule, func(t *testing.T) {
			all := newClouds(t, azureAround(serial("azure")))
			expect(t, mustNew(t, Request{Name: azureWorkload, Exec: row.exec, Client: all.client, Credentials: object(row.fields)}), "azure-1", "azure-2")
			if got := checkAzureQuestion(t, all, row.host).form.Get("client_assertion"); got != "projected" {
				t.Fatalf("sent the assertion %q", got)
			}
		})
	}
}
