package identity

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

func serviceAccount() []byte {
	_, key := rsaKey()
	return object(map[string]string{
		"type": "service_account", "client_email": "robot@project.iam.gserviceaccount.com", "private_key_id": "kid",
		"private_key": key, "token_uri": "https://oauth2.googleapis.com/token",
	})
}

func TestGoogleKey(t *testing.T) {
	all := newClouds(t, serial("google"))
	expect(t, mustNew(t, Request{Name: google, Credentials: serviceAccount(), Client: all.client}), "google-1", "google-2")
	checkGoogleQuestion(t, all.last(t))
}

func checkGoogleQuestion(t *testing.T, question asked) {
	t.Helper()
	if question.host != "oauth2.googleapis.com" || question.path != "/token" ||
		question.form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		t.Fatalf("asked %+v", question)
	}
	key, _ := rsaKey()
	claims := jwt.MapClaims{}
	if _, err := jwt.ParseWithClaims(question.form.Get("assertion"), claims, func(*jwt.Token) (any, error) { return key.Public(), nil }); err != nil {
		t.Fatal(err)
	}
	if claims["iss"] != "robot@project.iam.gserviceaccount.com" || claims["scope"] != strings.Join(googleScopes, " ") {
		t.Fatalf("claimed %v", claims)
	}
}

func TestGoogleAccessTokenAsItIs(t *testing.T) {
	expect(t, mustNew(t, Request{Name: google, Credentials: []byte("ya29.raw\n")}), "ya29.raw", "ya29.raw")
}

func TestGoogleUnusableKey(t *testing.T) {
	raw := object(map[string]string{"type": "service_account", "client_email": "a@b", "private_key": sentinel})
	_, err := mustNew(t, Request{Name: google, Credentials: raw}).get(context.Background())
	if !fault.Is(err, enginev1.Fault_INVALID) || strings.Contains(err.Error(), sentinel) {
		t.Fatalf("got %v", err)
	}
}

func TestGoogleInjectedKeyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, serviceAccount(), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	all := newClouds(t, serial("adc"))
	expect(t, mustNew(t, Request{Name: google, Injected: true, Client: all.client}), "adc-1", "adc-2")
	checkGoogleQuestion(t, all.last(t))
}

func TestGoogleInjectedMetadataServer(t *testing.T) {
	tokens := serial("metadata")
	var scopes string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		if !strings.HasSuffix(r.URL.Path, "/service-accounts/default/token") {
			_, _ = w.Write([]byte("project"))
			return
		}
		scopes = r.URL.Query().Get("scopes")
		tokens(w, r)
	}))
	t.Cleanup(server.Close)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("HOME", t.TempDir()) // no key file of a developer
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(server.URL, "http://"))
	expect(t, mustNew(t, Request{Name: google, Injected: true}), "metadata-1", "metadata-2")
	if scopes != strings.Join(googleScopes, ",") {
		t.Fatalf("asked for %q", scopes)
	}
}
