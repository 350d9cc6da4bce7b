package keychain

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
)

// askECR asks the registry's region for a token. It is good for every registry the machine's role may read, and still
// asked for by host: regions and partitions differ.
func askECR(ctx context.Context, client *http.Client, at registry) (Credential, time.Time, error) {
	options := []func(*config.LoadOptions) error{config.WithRegion(at.parts[3]), config.WithRetryMaxAttempts(2)}
	if client != nil {
		options = append(options, config.WithHTTPClient(client))
	}
	if at.parts[2] != "" {
		options = append(options, config.WithUseFIPSEndpoint(aws.FIPSEndpointStateEnabled))
	}
	settings, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	got, err := ecr.NewFromConfig(settings).GetAuthorizationToken(ctx, &ecr.GetAuthorizationTokenInput{})
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	for _, one := range got.AuthorizationData {
		raw, err := base64.StdEncoding.DecodeString(aws.ToString(one.AuthorizationToken))
		username, password, ok := strings.Cut(string(raw), ":")
		if err == nil && ok {
			return Credential{username, password}, aws.ToTime(one.ExpiresAt), nil
		}
	}
	return Credential{}, time.Time{}, errors.New("ECR answers without a token")
}
