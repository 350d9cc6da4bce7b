package chart

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// withKeychain notes which hosts the machine's credentials were asked for.
func withKeychain(t *testing.T, failure error) (*Store, *[]string) {
	t.Helper()
	hosts := &[]string{}
	s, err := New(Options{Dir: t.TempDir(), Keychain: func(_ context.Context, host string, verified bool) (string, string, error) {
		*hosts = append(*hosts, fmt.Sprintf("%s %v", host, verified))
		return "joe", "secret", failure
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s, hosts
}

func TestKeychain(t *testing.T) {
	r := newRegistry(t, "joe", true)
	r.push(t, "joe", small(t, "1.0.0"), "1.0.0")
	source := r.source("1.0.0")
	source.CaBundle = certificateOf(r.Server)
	s, hosts := withKeychain(t, nil)
	if _, err := s.Resolve(context.Background(), source); err != nil || !slices.Contains(*hosts, r.host()+" true") {
		t.Errorf("%v %v", *hosts, err)
	}
	unverified := r.source("1.0.0")
	unverified.InsecureSkipTlsVerify = true
	if _, err := s.Resolve(context.Background(), unverified); err != nil || !slices.Contains(*hosts, r.host()+" false") {
		t.Errorf("%v %v", *hosts, err)
	}
	asked := len(*hosts)
	for _, own := range []*enginev1.ChartSource{
		{Username: "joe", Password: "wrong"}, {BearerToken: "wrong"}, {DockerConfig: dockerConfig("elsewhere.example.com", "joe", "secret")},
	} {
		own.Repository, own.Name, own.Version, own.CaBundle = source.GetRepository(), "small", "1.0.0", source.GetCaBundle()
		_, err := s.Resolve(context.Background(), own)
		wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE)
		if len(*hosts) != asked {
			t.Errorf("%v: a request with credentials of its own gets no others", own)
		}
	}
}

// A keychain that fails keeps nobody from public charts, and is told of where the registry wants credentials.
func TestKeychainThatFails(t *testing.T) {
	failure := fault.New(enginev1.Fault_CHART_UNAVAILABLE, "this machine has no identity")
	for user, says := range map[string]string{"": "", "joe": "this machine has no identity"} {
		r := newRegistry(t, user, false)
		r.push(t, user, small(t, "1.0.0"), "1.0.0")
		s, _ := withKeychain(t, failure)
		_, err := s.Resolve(context.Background(), r.source("1.0.0"))
		if says == "" && err != nil {
			t.Error(err)
		} else if says != "" {
			wantFault(t, err, enginev1.Fault_CHART_UNAVAILABLE, says)
		}
	}
}
