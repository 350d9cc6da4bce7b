package cluster

import (
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/identity"
)

// login is what an identity may want to know of a kubeconfig: parameters, never credentials.
type login struct {
	clusterName string
	exec        *clientcmdapi.ExecConfig
}

// takeLogin reads the parameters of a context and takes every way to log in out of it, so that nothing of it can be
// run or sent: the identity stands in their place. Certificates and `as` stay. A user that is missing is none.
func takeLogin(parsed *clientcmdapi.Config, name string) login {
	context := parsed.Contexts[name]
	if context == nil {
		return login{} // refused later, with everything else that is wrong with a context
	}
	found := login{clusterName: context.Cluster}
	user := parsed.AuthInfos[context.AuthInfo]
	if user == nil {
		context.AuthInfo = ""
		return found
	}
	found.exec = user.Exec
	user.Exec, user.AuthProvider = nil, nil
	user.Token, user.TokenFile, user.Username, user.Password = "", "", "", ""
	return found
}

// identify makes every request carry a token of the request's identity.
func (r *Registry) identify(config *rest.Config, found login, request *enginev1.ConnectRequest) error {
	wanted := request.GetIdentity()
	if wanted == nil {
		return nil
	}
	tokens, err := identity.New(identity.Request{
		Name:        wanted.GetType(),
		Credentials: wanted.GetCredentials(),
		Injected:    wanted.GetInjected(),
		Trusted:     request.GetTrusted(),
		Exec:        found.exec,
		ClusterName: found.clusterName,
		Client:      r.TokenClient,
	})
	if err != nil {
		return err
	}
	config.BearerToken, config.BearerTokenFile = "", "" // of the pod, when it is the local cluster
	config.Wrap(tokens.Wrap)
	return nil
}
