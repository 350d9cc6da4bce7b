package identity

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const sentinel = "s3cr3t-s3ntinel"

// asked is one question to a token service.
type asked struct {
	host, path string
	form       url.Values
	header     http.Header
}

// clouds is a local server that answers for every token service. Its client sends it whatever is asked, whoever is
// meant: the address is in the Host header.
type clouds struct {
	client *http.Client
	mu     sync.Mutex
	seen   []asked
}

func newClouds(t *testing.T, answer http.HandlerFunc) *clouds {
	t.Helper()
	all := &clouds{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		all.mu.Lock()
		all.seen = append(all.seen, asked{host: r.Host, path: r.URL.Path, form: r.Form, header: r.Header})
		all.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	to, _ := url.Parse(server.URL)
	all.client = &http.Client{Transport: detour{to}}
	return all
}

type detour struct{ to *url.URL }

func (d detour) RoundTrip(request *http.Request) (*http.Response, error) {
	moved := request.Clone(request.Context())
	if moved.URL.Scheme != "https" {
		panic("a credential would be sent in the clear to " + moved.URL.Host)
	}
	moved.Host = moved.URL.Host
	moved.URL.Scheme, moved.URL.Host = d.to.Scheme, d.to.Host
	return http.DefaultTransport.RoundTrip(moved)
}

func (c *clouds) last(t *testing.T) asked {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) == 0 {
		t.Fatal("nobody asked")
	}
	return c.seen[len(c.seen)-1]
}

// countOf tells how often an address was asked.
func (c *clouds) countOf(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := 0
	for _, one := range c.seen {
		if one.path == path {
			count++
		}
	}
	return count
}

// serial answers with the tokens prefix-1, prefix-2, ...
func serial(prefix string) http.HandlerFunc {
	var mu sync.Mutex
	count := 0
	return func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		count++
		number := string(rune('0' + count))
		mu.Unlock()
		reply(w, map[string]any{"access_token": prefix + "-" + number, "token_type": "Bearer", "expires_in": 3600})
	}
}

func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func object(fields map[string]string) []byte {
	raw, _ := json.Marshal(fields)
	return raw
}

func mustNew(t *testing.T, request Request) *Tokens {
	t.Helper()
	tokens, err := New(request)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// expect asks twice (the second answer is kept), forgets the token and asks again.
func expect(t *testing.T, tokens *Tokens, first, second string) {
	t.Helper()
	for _, want := range []string{first, first} {
		if got, err := tokens.get(context.Background()); err != nil || got != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
	tokens.forget(first)
	if got, err := tokens.get(context.Background()); err != nil || got != second {
		t.Fatalf("after a refusal: got %q, %v, want %q", got, err, second)
	}
}

// rsaKey is a private key as PEM, and the key itself.
var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, string) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	der, _ := x509.MarshalPKCS8PrivateKey(key)
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
})

func certificatePEM(t *testing.T) string {
	t.Helper()
	key, keyPEM := rsaKey()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) + keyPEM
}

func kubelogin(args ...string) *clientcmdapi.ExecConfig {
	return &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1beta1", Command: "kubelogin", Args: append([]string{"get-token"}, args...)}
}

func up(args ...string) *clientcmdapi.ExecConfig {
	return &clientcmdapi.ExecConfig{APIVersion: execV1, Command: "up", Args: args}
}

func TestRefused(t *testing.T) {
	server := kubelogin("--server-id", "srv")
	principalJSON := object(map[string]string{"clientId": "c", "tenantId": "t", "clientSecret": sentinel})
	workload := func(fields ...string) []byte {
		all := map[string]string{"clientId": "c", "tenantId": "t", "federatedTokenFile": azureTokens + "/azure-identity-token"}
		for i := 0; i < len(fields); i += 2 {
			all[fields[i]] = fields[i+1]
		}
		return object(all)
	}
	oldUp := up("org", "token", "acme")
	oldUp.APIVersion = "client.authentication.k8s.io/v1beta1"
	notUp := up("org", "token", "acme")
	notUp.Command = "sh"
	key := func(fields ...string) []byte {
		all := map[string]string{"type": "service_account", "client_email": "a@b", "private_key": sentinel}
		for i := 0; i < len(fields); i += 2 {
			all[fields[i]] = fields[i+1]
		}
		return object(all)
	}
	for _, row := range []struct {
		rule    string
		request Request
		want    string
	}{
		{"unknown type", Request{Name: sentinel, Credentials: []byte("x")},
			"the identity type is not known: use one of AWSWebIdentityCredentials, AzureServicePrincipalCredentials, AzureWorkloadIdentityCredentials, GoogleApplicationCredentials, NebiusServiceAccountCredentials, UpboundTokens"},
		{"no type", Request{}, "the identity type is not known"},

		{"google: empty", Request{Name: google}, "has no credentials"},
		{"google: broken JSON", Request{Name: google, Credentials: []byte(`{"type": "` + sentinel)}, "not the JSON object"},
		{"google: JSON of other types", Request{Name: google, Credentials: []byte(`{"type": ["` + sentinel + `"]}`)}, "not the JSON object"},
		{"google: no type", Request{Name: google, Credentials: []byte(`{"private_key": "` + sentinel + `"}`)}, "without a type"},
		{"google: text", Request{Name: google, Credentials: []byte("two words " + sentinel)}, "neither a JSON key nor an access token"},
		{"google: a file of this machine", Request{Name: google, Credentials: key("type", "external_account")}, "a type that is not allowed here"},
		{"google: nested", Request{Name: google, Credentials: []byte(`{"type": "impersonated_service_account", "source_credentials": {"type": "external_account"}}`)}, "a type that is not allowed here"},
		{"google: token address elsewhere", Request{Name: google, Credentials: key("token_uri", "https://"+sentinel+".example.org/token")}, "an address that is not Google's"},
		{"google: token address in the clear", Request{Name: google, Credentials: key("token_uri", "http://oauth2.googleapis.com/token")}, "an address that is not Google's"},
		{"google: token address that looks right", Request{Name: google, Credentials: key("token_uri", "https://evilgoogleapis.com/token")}, "an address that is not Google's"},

		{"principal: injected", Request{Name: azurePrincipal, Injected: true, Exec: server}, "cannot use InjectedIdentity"},
		{"principal: empty", Request{Name: azurePrincipal, Exec: server}, "has no credentials"},
		{"principal: not JSON", Request{Name: azurePrincipal, Credentials: []byte(sentinel), Exec: server}, "not the JSON object"},
		{"principal: no exec", Request{Name: azurePrincipal, Credentials: principalJSON}, "exec section of kubelogin"},
		{"principal: no server", Request{Name: azurePrincipal, Credentials: principalJSON, Exec: kubelogin("--login", "spn")}, "no --server-id"},
		{"principal: server without value", Request{Name: azurePrincipal, Credentials: principalJSON, Exec: kubelogin("--server-id")}, "no --server-id"},
		{"principal: no secret", Request{Name: azurePrincipal, Credentials: object(map[string]string{"clientId": "c", "tenantId": "t"}), Exec: server}, "needs clientId, tenantId and"},
		{"principal: tenant that is an address", Request{Name: azurePrincipal, Credentials: object(map[string]string{"clientId": "c", "tenantId": "a/../" + sentinel, "clientSecret": "s"}), Exec: server}, "cannot be used"},
		{"principal: certificate file", Request{Name: azurePrincipal, Credentials: object(map[string]string{"clientId": "c", "tenantId": "t", "clientCertificate": "/etc/" + sentinel + ".pfx"}), Exec: server}, "not the certificate itself"},
		{"principal: certificate garbage", Request{Name: azurePrincipal, Credentials: object(map[string]string{"clientId": "c", "tenantId": "t", "clientCertificate": "aGVsbG8="}), Exec: server}, "cannot be read"},

		{"workload: injected", Request{Name: azureWorkload, Injected: true, Exec: server}, "cannot use InjectedIdentity"},
		{"workload: no exec", Request{Name: azureWorkload, Credentials: workload()}, "exec section of kubelogin"},
		{"workload: no client", Request{Name: azureWorkload, Credentials: workload("clientId", ""), Exec: server}, "needs clientId, tenantId and federatedTokenFile"},
		{"workload: file of another kind", Request{Name: azureWorkload, Credentials: workload("federatedTokenFile", "/var/run/secrets/kubernetes.io/serviceaccount/"+sentinel), Exec: server}, "a federatedTokenFile that is not allowed"},
		{"workload: file by a detour", Request{Name: azureWorkload, Credentials: workload("federatedTokenFile", azureTokens+"/../../"+sentinel), Exec: server}, "a federatedTokenFile that is not allowed"},
		{"workload: authority elsewhere", Request{Name: azureWorkload, Credentials: workload("authorityHost", "https://"+sentinel+".example.org"), Exec: server}, "an authorityHost that is not one of Azure's"},

		{"aws: with credentials", Request{Name: awsWebIdentity, Credentials: []byte(sentinel), ClusterName: "c"}, "its only source is InjectedIdentity"},
		{"aws: no kubeconfig", Request{Name: awsWebIdentity, Injected: true}, "needs a kubeconfig"},
		{"aws: another ARN", Request{Name: awsWebIdentity, Injected: true, ClusterName: "arn:aws:iam::1:" + sentinel}, "not an EKS cluster's"},
		{"aws: ARN without a name", Request{Name: awsWebIdentity, Injected: true, ClusterName: "arn:aws:eks:eu:1:cluster/"}, "not an EKS cluster's"},

		{"upbound: injected", Request{Name: upboundTokens, Injected: true, Exec: up("org", "token", "acme")}, "cannot use InjectedIdentity"},
		{"upbound: empty", Request{Name: upboundTokens, Exec: up("org", "token", "acme")}, "has no credentials"},
		{"upbound: no token", Request{Name: upboundTokens, Credentials: []byte("two words"), Exec: up("org", "token", "acme")}, "not a token"},
		{"upbound: no exec", Request{Name: upboundTokens, Credentials: []byte(sentinel)}, "with an exec section"},
		{"upbound: old exec", Request{Name: upboundTokens, Credentials: []byte(sentinel), Exec: oldUp}, execV1},
		{"upbound: another command", Request{Name: upboundTokens, Credentials: []byte(sentinel), Exec: notUp}, "up organization token"},
		{"upbound: another subcommand", Request{Name: upboundTokens, Credentials: []byte(sentinel), Exec: up("login", "token")}, "up organization token"},
		{"upbound: no organization", Request{Name: upboundTokens, Credentials: []byte(sentinel), Exec: up("org", "token")}, "no organization"},

		{"nebius: injected", Request{Name: nebiusServiceKey, Injected: true}, "cannot use InjectedIdentity"},
		{"nebius: not JSON", Request{Name: nebiusServiceKey, Credentials: []byte(sentinel)}, "not the JSON object"},
		{"nebius: half", Request{Name: nebiusServiceKey, Credentials: object(map[string]string{"private_key": sentinel})}, "needs private_key, public_key_id and account_id"},
		{"nebius: not a key", Request{Name: nebiusServiceKey, Credentials: object(map[string]string{"private_key": sentinel, "public_key_id": "k", "account_id": "a"})}, "not an RSA key"},
	} {
		t.Run(row.rule, func(t *testing.T) {
			_, err := New(row.request)
			if !fault.Is(err, enginev1.Fault_INVALID) || !strings.Contains(err.Error(), row.want) {
				t.Fatalf("got %v, want a refusal with %q", err, row.want)
			}
			if row.request.Name != sentinel && row.request.Name != "" && !strings.Contains(err.Error(), row.request.Name) {
				t.Fatalf("the identity is not named: %v", err)
			}
			if strings.Contains(err.Error(), sentinel) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one clean sentence: %q", err)
			}
		})
	}
}

func TestTrustedMayNameFilesAndAddresses(t *testing.T) {
	server := kubelogin("--server-id=srv")
	for rule, request := range map[string]Request{
		"google: external account": {Name: google, Credentials: []byte(`{"type": "external_account"}`)},
		"google: own address":      {Name: google, Credentials: []byte(`{"type": "service_account", "token_uri": "https://sts.example.org"}`)},
		"workload: own file and authority": {Name: azureWorkload, Exec: server, Credentials: object(map[string]string{
			"clientId": "c", "tenantId": "t", "federatedTokenFile": "/somewhere", "authorityHost": "https://login.example.org"})},
	} {
		t.Run(rule, func(t *testing.T) {
			request.Trusted = true
			mustNew(t, request)
		})
	}
}

// Every service may answer badly, in its own words; none of them reach a message.
func TestServiceSaysNo(t *testing.T) {
	_, keyPEM := rsaKey()
	nebius := object(map[string]string{"private_key": keyPEM, "public_key_id": "k", "account_id": "a"})
	googleJSON := object(map[string]string{"type": "service_account", "client_email": "a@b", "private_key": keyPEM})
	azureJSON := object(map[string]string{"clientId": "c", "tenantId": "t", "clientSecret": "s"})
	requests := map[string]Request{
		"google":  {Name: google, Credentials: googleJSON},
		"azure":   {Name: azurePrincipal, Credentials: azureJSON, Exec: kubelogin("--server-id", "srv")},
		"upbound": {Name: upboundTokens, Credentials: []byte("robot"), Exec: up("org", "token", "acme")},
		"nebius":  {Name: nebiusServiceKey, Credentials: nebius},
	}
	for _, row := range []struct {
		status int
		kind   fault.Kind
		want   string
	}{
		{http.StatusBadRequest, enginev1.Fault_UNAUTHORIZED, "HTTP 400 invalid_grant"},
		{http.StatusForbidden, enginev1.Fault_UNAUTHORIZED, "HTTP 403 invalid_grant"},
		{http.StatusServiceUnavailable, enginev1.Fault_UNREACHABLE, "HTTP 503 invalid_grant"},
	} {
		for name, request := range requests {
			t.Run(name+" "+row.want, func(t *testing.T) {
				request.Client = newClouds(t, azureAround(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(row.status)
					_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_grant", "error_description": sentinel})
				})).client
				_, err := mustNew(t, request).get(context.Background())
				if !fault.Is(err, row.kind) || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), request.Name) {
					t.Fatalf("got %v, want %s with %q", err, row.kind, row.want)
				}
				if strings.Contains(err.Error(), sentinel) {
					t.Fatalf("the answer is repeated: %v", err)
				}
			})
		}
	}
	for name, request := range requests {
		t.Run(name+" nobody there", func(t *testing.T) {
			gone := httptest.NewServer(nil)
			to, _ := url.Parse(gone.URL)
			gone.Close()
			request.Client = &http.Client{Transport: detour{to}}
			_, err := mustNew(t, request).get(context.Background())
			if !fault.Is(err, enginev1.Fault_UNREACHABLE) || !strings.Contains(err.Error(), "does not answer") {
				t.Fatalf("got %v", err)
			}
		})
	}
}
