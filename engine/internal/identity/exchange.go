package identity

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// RFC 8693, the exchange of one token for another.
const (
	grantExchange   = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeAccessToken = "urn:ietf:params:oauth:token-type:access_token"
	typeIDToken     = "urn:ietf:params:oauth:token-type:id_token"
	typeJWT         = "urn:ietf:params:oauth:token-type:jwt"
)

// maxAnswer bounds what is read of a token service's answer.
const maxAnswer = 1 << 20

// exchange posts an RFC 8693 form and reads the token from the answer.
func (r Request) exchange(ctx context.Context, address string, form url.Values, header http.Header) (Token, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return Token{}, err
	}
	if header != nil {
		request.Header = header
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	asked := time.Now()
	response, err := r.client.Do(request)
	if err != nil {
		return Token{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return Token{}, readAnswer(response.StatusCode, response.Body)
	}
	var got struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&got); err != nil || got.AccessToken == "" {
		return Token{}, fault.New(enginev1.Fault_UNAUTHORIZED, "the token service of the identity %s answers without a token", r.Name)
	}
	token := Token{Value: got.AccessToken}
	if got.ExpiresIn > 0 {
		token.Expiry = asked.Add(time.Duration(got.ExpiresIn) * time.Second)
	}
	return token, nil
}
