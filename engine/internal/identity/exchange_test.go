package identity

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestUpbound(t *testing.T) {
	byVariable := up("organization", "token", "other")
	byVariable.Env = []clientcmdapi.ExecEnvVar{{Name: "HOME", Value: "x"}, {Name: "ORGANIZATION", Value: "acme"}}
	alone := up("org", "token")
	alone.Env = byVariable.Env
	for rule, exec := range map[string]*clientcmdapi.ExecConfig{
		"org": up("org", "token", "acme"), "organization": up("organization", "token", "acme"),
		"the variable first": byVariable, "only the variable": alone,
	} {
		t.Run(rule, func(t *testing.T) {
			all := newClouds(t, serial("upbound"))
			expect(t, mustNew(t, Request{Name: upboundTokens, Credentials: []byte("robot\n"), Exec: exec, Client: all.client}), "upbound-1", "upbound-2")
			question := all.last(t)
			if question.host != "auth.upbound.io" || question.path != "/apis/tokenexchange.upbound.io/v1alpha1/orgscopedtokens" ||
				question.header.Get("Authorization") != "Bearer robot" {
				t.Fatalf("asked %+v", question)
			}
			checkForm(t, question.form, url.Values{
				"audience":           {"upbound:spaces:api", "upbound:spaces:controlplanes"},
				"grant_type":         {"urn:ietf:params:oauth:grant-type:token-exchange"},
				"subject_token_type": {"urn:ietf:params:oauth:token-type:id_token"},
				"subject_token":      {"robot"},
				"scope":              {"upbound:org:acme"},
			})
		})
	}
}

func TestNebius(t *testing.T) {
	key, keyPEM := rsaKey()
	all := newClouds(t, serial("nebius"))
	expect(t, mustNew(t, Request{Name: nebiusServiceKey, Client: all.client, Credentials: object(map[string]string{
		"private_key": keyPEM, "public_key_id": "publickey-1", "account_id": "serviceaccount-1",
	})}), "nebius-1", "nebius-2")
	question := all.last(t)
	if question.host != "auth.eu.nebius.com" || question.path != "/oauth2/token/exchange" {
		t.Fatalf("asked %+v", question)
	}
	claims := jwt.MapClaims{}
	proof, err := jwt.ParseWithClaims(question.form.Get("subject_token"), claims, func(*jwt.Token) (any, error) { return key.Public(), nil },
		jwt.WithValidMethods([]string{"RS256"}), jwt.WithExpirationRequired(), jwt.WithIssuer("serviceaccount-1"), jwt.WithSubject("serviceaccount-1"))
	if err != nil || proof.Header["kid"] != "publickey-1" {
		t.Fatalf("proved %v with %v: %v", claims, proof, err)
	}
	question.form.Del("subject_token")
	checkForm(t, question.form, url.Values{
		"grant_type":           {"urn:ietf:params:oauth:grant-type:token-exchange"},
		"requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
		"subject_token_type":   {"urn:ietf:params:oauth:token-type:jwt"},
	})
}

func checkForm(t *testing.T, got, want url.Values) {
	t.Helper()
	for name, values := range want {
		if !slices.Equal(got[name], values) {
			t.Errorf("%s is %v, want %v", name, got[name], values)
		}
	}
	if len(got) != len(want) {
		t.Errorf("sent %v", got)
	}
}

func TestAnswerWithoutToken(t *testing.T) {
	for name, body := range map[string]any{"empty": map[string]string{}, "other": []string{sentinel}} {
		t.Run(name, func(t *testing.T) {
			all := newClouds(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, body) })
			_, err := mustNew(t, Request{Name: upboundTokens, Credentials: []byte("robot"), Exec: up("org", "token", "acme"), Client: all.client}).get(t.Context())
			if err == nil || err.Error() != "the token service of the identity UpboundTokens answers without a token" {
				t.Fatalf("got %v", err)
			}
		})
	}
}
