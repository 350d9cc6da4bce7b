package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const sentinel = "s3cr3t-s3ntinel"

// kubeconfig is a file with the given extra lines in its cluster and its user.
func kubeconfig(cluster, user string) string {
	indent := func(lines string) string {
		return strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n    ")
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
contexts:
- name: here
  context: {cluster: there, user: me}
clusters:
- name: there
  cluster:
    server: https://127.0.0.1:6443
    %s
users:
- name: me
  user:
    token: %s
    %s
`, indent(cluster), sentinel, indent(user))
}

func TestWhitelist(t *testing.T) {
	certificate, key := pair(t)
	for _, row := range []struct {
		name, cluster, user string
		refused             string // part of the sentence; empty: allowed
	}{
		{name: "token"},
		{name: "tls-server-name", cluster: "tls-server-name: api.example.org"},
		{name: "proxy", cluster: "proxy-url: http://127.0.0.1:3128"},
		{name: "certificate authority", cluster: "certificate-authority-data: " + certificate},
		{name: "client certificate", user: "client-certificate-data: " + certificate + "\nclient-key-data: " + key},
		{name: "as", user: "as: jane\nas-groups: [dev]"},
		{name: "exec", user: "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true, interactiveMode: Never}", refused: "exec"},
		{name: "auth-provider", user: "auth-provider: {name: gcp}", refused: "auth-provider"},
		{name: "token file", user: "tokenFile: /etc/passwd", refused: "tokenFile"},
		{name: "certificate file", user: "client-certificate: /etc/passwd", refused: "client-certificate,"},
		{name: "key file", user: "client-key: /etc/passwd", refused: "client-key,"},
		{name: "authority file", cluster: "certificate-authority: /etc/passwd", refused: "certificate-authority,"},
		{name: "insecure", cluster: "insecure-skip-tls-verify: true", refused: "insecure-skip-tls-verify"},
		{name: "masters", user: "as: jane\nas-groups: [dev, 'system:masters']", refused: "system:masters"},
		{name: "as-uid", user: "as: jane\nas-uid: x", refused: "as-uid"},
		{name: "as-user-extra", user: "as: jane\nas-user-extra: {scopes: [all]}", refused: "as-user-extra"},
		{name: "not PEM", cluster: "certificate-authority-data: aGVsbG8=", refused: "certificate-authority-data is not"},
		{name: "half a pair", user: "client-certificate-data: " + certificate, refused: "only one of"},
		{name: "not a pair", user: "client-certificate-data: " + certificate + "\nclient-key-data: aGVsbG8=", refused: "not a matching"},
	} {
		t.Run(row.name, func(t *testing.T) {
			request := &enginev1.ConnectRequest{
				Credentials: &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: []byte(kubeconfig(row.cluster, row.user))},
			}
			_, err := NewRegistry().Connect(context.Background(), request)
			if row.refused == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if !fault.Is(err, enginev1.Fault_INVALID) || !strings.Contains(err.Error(), row.refused) {
				t.Fatalf("got %v, want a refusal of %q", err, row.refused)
			}
			if strings.Contains(err.Error(), sentinel) || strings.Contains(err.Error(), "/etc/passwd") {
				t.Fatalf("the message repeats the file: %v", err)
			}
		})
	}
}

func TestRefusalNamesTwoWaysOut(t *testing.T) {
	_, _, err := restConfig(&enginev1.ConnectRequest{
		Credentials: &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: []byte(kubeconfig("", "tokenFile: /x"))},
	})
	want := "the kubeconfig uses tokenFile, which is not allowed here: put the content itself into the kubeconfig, or have the operator allow such kubeconfigs"
	if err == nil || err.Error() != want {
		t.Fatalf("got %v", err)
	}
}

func TestTrustedAllowsExec(t *testing.T) {
	config, _, err := restConfig(&enginev1.ConnectRequest{
		Trusted: true,
		Credentials: &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: []byte(kubeconfig("",
			"exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true, interactiveMode: Never}"))},
	})
	if err != nil || config.ExecProvider == nil {
		t.Fatalf("got %v, %v", config, err)
	}
}

func TestGarbage(t *testing.T) {
	for name, data := range map[string]string{
		"empty":      "",
		"text":       sentinel,
		"binary":     "\x00\x01" + sentinel,
		"yaml":       "a: [" + sentinel,
		"map":        "token: " + sentinel,
		"other kind": "apiVersion: v1\nkind: Secret\nstringData: {token: " + sentinel + "}",
		"no context": strings.Replace(kubeconfig("", ""), "current-context: here", "", 1),
		"bad type":   strings.Replace(kubeconfig("", ""), "cluster: there,", "cluster: [there],", 1),
		"no cluster": strings.Replace(kubeconfig("", ""), "cluster: there,", "cluster: elsewhere,", 1),
		"no user":    strings.Replace(kubeconfig("", ""), "user: me}", "user: nobody}", 1),
		"bad server": strings.Replace(kubeconfig("", ""), "https://127.0.0.1:6443", "'::"+sentinel+"'", 1),
		"bad proxy":  kubeconfig("proxy-url: 'gopher://"+sentinel+"'", ""),
		"bad base64": kubeconfig("certificate-authority-data: '"+sentinel+"!'", ""),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewRegistry().Connect(context.Background(), &enginev1.ConnectRequest{
				Credentials: &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: []byte(data)},
			})
			if !fault.Is(err, enginev1.Fault_INVALID) {
				t.Fatalf("got %v, want INVALID", err)
			}
			if strings.Contains(err.Error(), sentinel) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one clean sentence: %q", err)
			}
		})
	}
}

func TestHandles(t *testing.T) {
	registry := NewRegistry()
	connect := func(user string) *Cluster {
		request := &enginev1.ConnectRequest{
			Credentials: &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: []byte(kubeconfig("", ""))},
		}
		if user != "" {
			request.Impersonate = &enginev1.Impersonation{User: user}
		}
		made, err := registry.Connect(context.Background(), request)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	one, again, jane := connect(""), connect(""), connect("jane")
	if one != again || one.ID == jane.ID {
		t.Fatal("a handle is for credentials and identity")
	}
	if one.Inventories != jane.Inventories {
		t.Fatal("inventories are the cluster's, not the identity's")
	}
	if mine, yours := one.Config(), one.Config(); mine == yours || mine.BearerToken != "" {
		t.Fatal("a config is the caller's own and carries no secret")
	}
	if _, err := registry.Get("nope"); !fault.Is(err, enginev1.Fault_UNKNOWN_CLUSTER) {
		t.Fatalf("got %v", err)
	}
}

// pair is a self-signed certificate and its key, as a kubeconfig holds them.
func pair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, data []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	return encode("CERTIFICATE", der), encode("EC PRIVATE KEY", keyDER)
}
