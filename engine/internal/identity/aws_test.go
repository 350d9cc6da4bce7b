package identity

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// emptyHash is the SHA-256 of nothing.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// bareAWS hides what a developer's machine has of AWS.
func bareAWS(t *testing.T) string {
	t.Helper()
	empty := t.TempDir()
	for _, name := range []string{"AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CA_BUNDLE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(empty, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(empty, "credentials"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_REGION", "eu-central-1")
	return empty
}

// checkEKS does what STS does with a token: it signs the question again and compares.
func checkEKS(t *testing.T, token, cluster string, signer aws.Credentials) {
	t.Helper()
	encoded, ok := strings.CutPrefix(token, eksPrefix)
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if !ok || err != nil {
		t.Fatalf("%v in %q", err, token)
	}
	at, err := url.Parse(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	query := at.Query()
	if at.Host != "sts.eu-central-1.amazonaws.com" || query.Get("Action") != "GetCallerIdentity" ||
		query.Get("X-Amz-Expires") != "900" || query.Get("X-Amz-SignedHeaders") != "host;x-k8s-aws-id" {
		t.Fatalf("the question is %s", raw)
	}
	signedAt, err := time.Parse("20060102T150405Z", query.Get("X-Amz-Date"))
	if err != nil {
		t.Fatal(err)
	}
	signature := query.Get("X-Amz-Signature")
	for _, added := range []string{"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-SignedHeaders", "X-Amz-Signature"} {
		query.Del(added)
	}
	at.RawQuery = query.Encode()
	question, _ := http.NewRequest(http.MethodGet, at.String(), nil)
	question.Header.Set("x-k8s-aws-id", cluster)
	again, _, err := v4.NewSigner().PresignHTTP(context.Background(), signer, question, emptyHash, "sts", "eu-central-1", signedAt)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := url.Parse(again)
	if want.Query().Get("X-Amz-Signature") != signature {
		t.Fatalf("the signature is not for the cluster %s: %s", cluster, raw)
	}
}

func TestAWSVariables(t *testing.T) {
	for rule, name := range map[string]string{
		"name": "prod",
		"ARN":  "arn:aws:eks:eu-central-1:123456789012:cluster/prod",
	} {
		t.Run(rule, func(t *testing.T) {
			bareAWS(t)
			t.Setenv("AWS_ACCESS_KEY_ID", "AKIA")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "hush")
			tokens := mustNew(t, Request{Name: awsWebIdentity, Injected: true, ClusterName: name})
			first, err := tokens.get(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			checkEKS(t, first, "prod", aws.Credentials{AccessKeyID: "AKIA", SecretAccessKey: "hush"})
			if again, _ := tokens.get(context.Background()); again != first {
				t.Fatal("signed again for a second request")
			}
			if life := time.Until(tokens.token.Expiry); life > eksLife || life < eksLife-time.Minute {
				t.Fatalf("lives %s", life)
			}
		})
	}
}

func TestAWSRoleOfServiceAccount(t *testing.T) {
	file := filepath.Join(bareAWS(t), "token")
	if err := os.WriteFile(file, []byte("projected"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/deployer")
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file)
	ends := time.Now().Add(10 * time.Minute).UTC().Truncate(time.Second)
	all := newClouds(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		_, _ = w.Write([]byte(`<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>hush</SecretAccessKey>
<SessionToken>session</SessionToken><Expiration>` + ends.Format(time.RFC3339) + `</Expiration></Credentials>
<AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/deployer/x</Arn><AssumedRoleId>A:x</AssumedRoleId></AssumedRoleUser>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`))
	})
	tokens := mustNew(t, Request{Name: awsWebIdentity, Injected: true, ClusterName: "prod", Client: all.client})
	got, err := tokens.get(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	question := all.last(t)
	if question.host != "sts.eu-central-1.amazonaws.com" || question.form.Get("Action") != "AssumeRoleWithWebIdentity" ||
		question.form.Get("WebIdentityToken") != "projected" || question.form.Get("RoleArn") != "arn:aws:iam::123456789012:role/deployer" {
		t.Fatalf("asked %+v", question)
	}
	checkEKS(t, got, "prod", aws.Credentials{AccessKeyID: "ASIA", SecretAccessKey: "hush", SessionToken: "session"})
	if !tokens.token.Expiry.Equal(ends) {
		t.Fatalf("ends %s, the role ends %s", tokens.token.Expiry, ends)
	}
}

func TestAWSSaysWhatTheMachineLacks(t *testing.T) {
	bareAWS(t)
	_, err := mustNew(t, Request{Name: awsWebIdentity, Injected: true, ClusterName: "prod"}).get(context.Background())
	if !fault.Is(err, enginev1.Fault_UNAUTHORIZED) || !strings.Contains(err.Error(), awsWebIdentity+" gets no token from this machine") {
		t.Fatalf("got %v", err)
	}
}
