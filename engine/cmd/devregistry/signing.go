package main

import (
	"crypto/ecdsa"
	"net/http"
	"net/http/httptest"
	"strings"

	"oras.land/oras-go/v2/registry/remote"

	"github.com/pilothouse-dev/pilothouse/engine/internal/devregistry"
)

// signing signs what the registry has: POST /cosign/<repository>@<digest>, with the registry's own login.
func signing(registry http.Handler, key *ecdsa.PrivateKey) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		name, manifest, found := strings.Cut(request.URL.Path, "@")
		at, err := remote.NewRepository("registry/" + name)
		if !found || err != nil || request.Method != http.MethodPost {
			http.Error(w, "POST /cosign/<repository>@<digest>", http.StatusBadRequest)
			return
		}
		at.PlainHTTP, at.Client = true, &within{registry, request.Header.Get("Authorization")}
		if err := devregistry.Cosign(request.Context(), at, manifest, key); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})
}

// within asks the registry without a connection.
type within struct {
	registry http.Handler
	login    string
}

func (i *within) Do(request *http.Request) (*http.Response, error) {
	if i.login != "" {
		request.Header.Set("Authorization", i.login)
	}
	request.RequestURI = request.URL.RequestURI()
	answer := httptest.NewRecorder()
	i.registry.ServeHTTP(answer, request)
	response := answer.Result()
	response.Request = request
	return response, nil
}
