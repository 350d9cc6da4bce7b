package keychain

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const sentinel = "hunter2"

func awsKeys(t *testing.T) {
	t.Helper()
	bare(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", sentinel)
}

func ecrAnswer(password string, life time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_ = json.NewEncoder(w).Encode(map[string]any{"authorizationData": []any{map[string]any{
			"authorizationToken": base64.StdEncoding.EncodeToString([]byte("AWS:" + password)),
			"expiresAt":          time.Now().Add(life).Unix(),
		}}})
	}
}

func TestECR(t *testing.T) {
	for host, endpoint := range map[string]string{
		"123456789012.dkr.ecr.eu-central-1.amazonaws.com":   "api.ecr.eu-central-1.amazonaws.com/",
		"123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn":  "api.ecr.cn-north-1.amazonaws.com.cn/",
		"123456789012.dkr.ecr-fips.us-east-1.amazonaws.com": "api.ecr-fips.us-east-1.amazonaws.com/",
		"123456789012.DKR.ecr.us-west-2.amazonaws.com:443":  "api.ecr.us-west-2.amazonaws.com/",
		"123456789012.dkr-ecr.us-west-2.on.aws":             "api.ecr.us-west-2.amazonaws.com/",
	} {
		awsKeys(t)
		all := newCloud(t, ecrAnswer("token", 12*time.Hour))
		got, ok, err := New(all.Client).Credential(context.Background(), host, true)
		if err != nil || !ok || got != (Credential{"AWS", "token"}) {
			t.Fatalf("%s: %v, %v", host, ok, err)
		}
		if len(all.asked) != 1 || all.asked[0] != endpoint {
			t.Errorf("%s: asked %v", host, all.asked)
		}
		if head := all.header[0]; !strings.Contains(head.Get("Authorization"), "AKIDEXAMPLE") ||
			head.Get("X-Amz-Target") != "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken" {
			t.Errorf("%s: asked with %v", host, head)
		}
	}
}

func TestGoogle(t *testing.T) {
	bare(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "robot@project.iam.gserviceaccount.com", "private_key_id": "kid",
		"token_uri":   "https://oauth2.googleapis.com/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	for _, host := range []string{"europe-docker.pkg.dev", "gcr.io", "eu.gcr.io"} {
		all := newCloud(t, func(w http.ResponseWriter, _ *http.Request) {
			send(w, map[string]any{"access_token": "ya29", "expires_in": 3600, "token_type": "Bearer"})
		})
		got, ok, err := New(all.Client).Credential(context.Background(), host, true)
		if err != nil || !ok || got != (Credential{"oauth2accesstoken", "ya29"}) {
			t.Fatalf("%s: %v, %v", host, ok, err)
		}
		claims := jwt.MapClaims{}
		if _, err := jwt.ParseWithClaims(all.forms[0].Get("assertion"), claims, func(*jwt.Token) (any, error) { return key.Public(), nil }); err != nil {
			t.Fatal(err)
		}
		if all.asked[0] != "oauth2.googleapis.com/token" || claims["scope"] != googleScope {
			t.Errorf("%s: asked %v with %v", host, all.asked, claims)
		}
	}
}

// A machine of Google's is asked by its metadata service, whose address the library lets us choose.
func TestGoogleMetadata(t *testing.T) {
	bare(t)
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Metadata-Flavor") != "Google" || !strings.HasSuffix(request.URL.Path, "/service-accounts/default/token") {
			http.NotFound(w, request)
			return
		}
		w.Header().Set("Metadata-Flavor", "Google")
		send(w, map[string]any{"access_token": "from-metadata", "expires_in": 3600, "token_type": "Bearer"})
	}))
	t.Cleanup(metadata.Close)
	t.Setenv("GCE_METADATA_HOST", metadata.Listener.Addr().String())
	got, ok, err := New(nil).Credential(context.Background(), "europe-docker.pkg.dev", true)
	if err != nil || !ok || got.Password != "from-metadata" {
		t.Fatalf("%v, %v", ok, err)
	}
}

func azureAnswer(t *testing.T, refresh string) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, request *http.Request) {
		switch {
		case request.URL.Path == "/oauth2/exchange":
			send(w, map[string]string{"refresh_token": refresh})
		case strings.HasSuffix(request.URL.Path, "/token"):
			send(w, map[string]any{"access_token": "entra", "expires_in": "3600", "expires_on": fmt.Sprint(time.Now().Add(time.Hour).Unix()), "resource": "x", "token_type": "Bearer"})
		default: // discovery of the tenant
			send(w, map[string]any{
				"tenant_discovery_endpoint": "https://login.microsoftonline.com/tenant/v2.0/.well-known/openid-configuration",
				"metadata":                  []any{},
				"token_endpoint":            "https://login.microsoftonline.com/tenant/oauth2/v2.0/token",
				"authorization_endpoint":    "https://login.microsoftonline.com/tenant/oauth2/v2.0/authorize",
				"issuer":                    "https://login.microsoftonline.com/tenant/v2.0",
			})
		}
	}
}

func TestACR(t *testing.T) {
	refresh, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{ExpiresAt: jwt.NewNumericDate(time.Now().Add(3 * time.Hour))}).SignedString([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	federated := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(federated, []byte("projected"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, variables := range map[string]map[string]string{
		"workload identity": {"AZURE_FEDERATED_TOKEN_FILE": federated, "AZURE_CLIENT_ID": "client", "AZURE_TENANT_ID": "tenant"},
		"variables":         {"AZURE_CLIENT_SECRET": sentinel, "AZURE_CLIENT_ID": "client", "AZURE_TENANT_ID": "tenant"},
		"managed identity":  {"AZURE_CLIENT_ID": "client"},
	} {
		t.Run(name, func(t *testing.T) {
			bare(t)
			for key, value := range variables {
				t.Setenv(key, value)
			}
			all := newCloud(t, azureAnswer(t, refresh))
			keys := New(all.Client)
			got, ok, err := keys.Credential(context.Background(), "mine.azurecr.io", true)
			if err != nil || !ok || got != (Credential{acrUser, refresh}) {
				t.Fatalf("%v, %v, asked %v", ok, err, all.asked)
			}
			last := len(all.asked) - 1
			if all.asked[last] != "mine.azurecr.io/oauth2/exchange" || all.forms[last].Get("access_token") != "entra" || all.forms[last].Get("service") != "mine.azurecr.io" {
				t.Errorf("asked %v with %v", all.asked, all.forms[last])
			}
			if left := time.Until(keys.known["mine.azurecr.io"].until); left < 2*time.Hour || left > 3*time.Hour {
				t.Errorf("kept for %s", left)
			}
		})
	}
}

// Nobody else is ever asked about, or shown, anything.
func TestOtherHosts(t *testing.T) {
	awsKeys(t)
	all := newCloud(t, ecrAnswer("token", time.Hour))
	keys := New(all.Client)
	for _, host := range []string{
		"registry.example.com", "ghcr.io", "docker.io", "public.ecr.aws", "", "localhost:5000",
		"123456789012.dkr.ecr.us-east-1.amazonaws.com.evil.example", "evil.example/123456789012.dkr.ecr.us-east-1.amazonaws.com",
		"123456789012.dkr.ecr.us-east-1.amazonaws.com:5000", "x123456789012.dkr.ecr.us-east-1.amazonaws.com",
		"123456789012.dkr.ecr.us-east-1.evil.amazonaws.com", "evilgcr.io", "gcr.io.evil.example", "evil.gcr.io:80",
		"pkg.dev", "evilpkg.dev", "a.b.pkg.dev", "azurecr.io", "evilazurecr.io", "mine.azurecr.io.evil.example", "mine.azurecr.io\n",
	} {
		if _, ok, err := keys.Credential(context.Background(), host, true); ok || err != nil {
			t.Errorf("%q: %v, %v", host, ok, err)
		}
	}
	// Without a verified certificate, the host may be anybody.
	if _, ok, err := keys.Credential(context.Background(), "123456789012.dkr.ecr.us-east-1.amazonaws.com", false); ok || err != nil {
		t.Errorf("unverified: %v, %v", ok, err)
	}
	if len(all.asked) != 0 {
		t.Fatalf("asked %v", all.asked)
	}
}

func TestACredentialIsKeptUntilShortlyBeforeItsEnd(t *testing.T) {
	awsKeys(t)
	all := newCloud(t, ecrAnswer("token", time.Hour))
	keys := New(all.Client)
	host := "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, ok, err := keys.Credential(context.Background(), host, true); !ok || err != nil {
				t.Errorf("%v, %v", ok, err)
			}
		})
	}
	group.Wait()
	if len(all.asked) != 1 {
		t.Fatalf("asked %d times", len(all.asked))
	}
	keys.now = func() time.Time { return time.Now().Add(54 * time.Minute) }
	_, _, _ = keys.Credential(context.Background(), host, true)
	keys.now = func() time.Time { return time.Now().Add(56 * time.Minute) }
	_, _, _ = keys.Credential(context.Background(), host, true)
	if len(all.asked) != 2 {
		t.Fatalf("asked %d times, want once more", len(all.asked))
	}
}

func TestFailuresAreOneSentence(t *testing.T) {
	awsKeys(t)
	t.Setenv("AZURE_CLIENT_SECRET", sentinel)
	t.Setenv("AZURE_CLIENT_ID", "client")
	t.Setenv("AZURE_TENANT_ID", "tenant")
	metadata, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = metadata.Close()
	t.Setenv("GCE_METADATA_HOST", metadata.Addr().String())
	for host, part := range map[string]string{
		"123456789012.dkr.ecr.eu-central-1.amazonaws.com": "AWS identity gives no credentials for 123456789012.dkr.ecr.eu-central-1.amazonaws.com: refused AccessDeniedException",
		"europe-docker.pkg.dev":                           "Google identity gives no credentials for europe-docker.pkg.dev",
		"mine.azurecr.io":                                 "Azure identity gives no credentials for mine.azurecr.io",
	} {
		all := newCloud(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"AccessDeniedException","message":"` + sentinel + `","error":"` + sentinel + `"}`))
		})
		keys := New(all.Client)
		_, ok, err := keys.Credential(context.Background(), host, true)
		if ok || !fault.Is(err, enginev1.Fault_CHART_UNAVAILABLE) || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), sentinel) {
			t.Errorf("%s: %v, %v", host, ok, err)
		}
		before := len(all.asked)
		if _, _, again := keys.Credential(context.Background(), host, true); again == nil || len(all.asked) != before {
			t.Errorf("%s: a failure is asked for again at once", host)
		}
	}
}
