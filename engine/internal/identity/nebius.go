package identity

import (
	"context"
	"net/url"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	nebiusAddress = "https://auth.eu.nebius.com/oauth2/token/exchange"
	// nebiusProof is how long the signed claim lives: it is used once, at once.
	nebiusProof = time.Minute
)

// newNebius signs a claim with the service account's key and exchanges it. The exchange is the one Nebius documents;
// its SDK would do the same over gRPC.
func newNebius(request Request) (Source, error) {
	var account struct {
		PrivateKey  string `json:"private_key"`
		PublicKeyID string `json:"public_key_id"`
		AccountID   string `json:"account_id"`
	}
	if err := request.decode(&account); err != nil {
		return nil, err
	}
	if account.PrivateKey == "" || account.PublicKeyID == "" || account.AccountID == "" {
		return nil, request.invalid("needs private_key, public_key_id and account_id in its credentials")
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(account.PrivateKey))
	if err != nil {
		return nil, request.invalid("has a private_key that is not an RSA key in PEM")
	}
	return func(ctx context.Context) (Token, error) {
		now := time.Now()
		claim := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{
			Issuer:    account.AccountID,
			Subject:   account.AccountID,
			IssuedAt:  jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(now.Add(nebiusProof)),
		})
		claim.Header["kid"] = account.PublicKeyID
		signed, err := claim.SignedString(key)
		if err != nil {
			return Token{}, err
		}
		return request.exchange(ctx, nebiusAddress, url.Values{
			"grant_type":           {grantExchange},
			"requested_token_type": {typeAccessToken},
			"subject_token":        {signed},
			"subject_token_type":   {typeJWT},
		}, nil)
	}, nil
}
