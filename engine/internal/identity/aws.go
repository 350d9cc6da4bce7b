package identity

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	eksPrefix  = "k8s-aws-v1."
	eksCluster = "x-k8s-aws-id"
	eksExpires = "X-Amz-Expires"
	// eksLife is what EKS accepts at most.
	eksLife = 15 * time.Minute
)

// newAWS logs in to EKS with what the machine has (the SDK's default chain: a role for service accounts, a node's
// role, variables). The token is a signed question to STS, "who am I?", that the cluster asks in our name; signing
// it needs no request.
func newAWS(request Request) (Source, error) {
	if !request.Injected {
		return nil, request.invalid("uses what the machine has: its only source is InjectedIdentity")
	}
	name, err := request.eksName()
	if err != nil {
		return nil, err
	}
	var settings *aws.Config // kept: it caches the role's credentials
	return func(ctx context.Context) (Token, error) {
		if settings == nil {
			loaded, err := config.LoadDefaultConfig(ctx, request.awsOptions()...)
			if err != nil {
				return Token{}, err
			}
			settings = &loaded
		}
		return eksToken(ctx, *settings, name)
	}, nil
}

// eksName is the cluster's name: the kubeconfig's own name for it, which `aws eks update-kubeconfig` makes an ARN.
func (r Request) eksName() (string, error) {
	if r.ClusterName == "" {
		return "", r.invalid("needs a kubeconfig: the name of its context's cluster is the name of the EKS cluster")
	}
	if !arn.IsARN(r.ClusterName) {
		return r.ClusterName, nil
	}
	parsed, err := arn.Parse(r.ClusterName)
	at := strings.LastIndex(parsed.Resource, "/")
	if err != nil || at < 0 || at == len(parsed.Resource)-1 {
		return "", r.invalid("finds an ARN that is not an EKS cluster's in the kubeconfig")
	}
	return parsed.Resource[at+1:], nil
}

// awsOptions leaves the SDK its own client unless a test brings one: AWS_CA_BUNDLE needs it.
func (r Request) awsOptions() []func(*config.LoadOptions) error {
	if r.Client == nil {
		return nil
	}
	return []func(*config.LoadOptions) error{config.WithHTTPClient(r.Client)}
}

func eksToken(ctx context.Context, settings aws.Config, cluster string) (Token, error) {
	signer, err := settings.Credentials.Retrieve(ctx)
	if err != nil {
		return Token{}, err
	}
	signed := time.Now()
	question, err := sts.NewPresignClient(sts.NewFromConfig(settings)).PresignGetCallerIdentity(ctx,
		&sts.GetCallerIdentityInput{}, func(options *sts.PresignOptions) {
			options.ClientOptions = append(options.ClientOptions, sts.WithAPIOptions(
				smithyhttp.AddHeaderValue(eksCluster, cluster),
				smithyhttp.AddHeaderValue(eksExpires, strconv.Itoa(int(eksLife.Seconds()))),
			))
		})
	if err != nil {
		return Token{}, err
	}
	token := Token{
		Value:  eksPrefix + base64.RawURLEncoding.EncodeToString([]byte(question.URL)),
		Expiry: signed.Add(eksLife),
	}
	// A signature is worth no more than the credentials that made it.
	if signer.CanExpire && signer.Expires.Before(token.Expiry) {
		token.Expiry = signer.Expires
	}
	return token, nil
}
