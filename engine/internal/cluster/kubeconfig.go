package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const (
	// mastersGroup passes every authorisation check: acting as it would make whoever writes a kubeconfig root.
	mastersGroup = "system:masters"
	// A Secret holds at most 1 MiB.
	maxKubeconfig = 1 << 20
	// chosen is the one context of a config made by the whitelist.
	chosen = "chosen"
)

// restConfig reads the request's credentials. No message repeats what a kubeconfig holds.
func restConfig(request *enginev1.ConnectRequest) (*rest.Config, login, error) {
	if request.GetInCluster() {
		config, err := inCluster()
		return config, login{}, err
	}
	parsed, err := parseKubeconfig(request.GetKubeconfig())
	if err != nil {
		return nil, login{}, err
	}
	name := request.GetContext()
	if name == "" {
		name = parsed.CurrentContext
	}
	var found login
	if request.GetIdentity() != nil {
		found = takeLogin(parsed, name)
	}
	if !request.GetTrusted() {
		if parsed, err = whitelist(parsed, name); err != nil {
			return nil, login{}, err
		}
		name = chosen
	} else if _, _, err = pick(parsed, name); err != nil {
		return nil, login{}, err
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*parsed, name, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, login{}, fault.Wrap(enginev1.Fault_INVALID, err, "the kubeconfig is not valid: a server, a certificate, a key or a proxy address in it cannot be used")
	}
	return config, found, nil
}

func parseKubeconfig(data []byte) (*clientcmdapi.Config, error) {
	switch {
	case len(data) == 0:
		return nil, fault.New(enginev1.Fault_INVALID, "the kubeconfig is empty")
	case len(data) > maxKubeconfig:
		return nil, fault.New(enginev1.Fault_INVALID, "the kubeconfig is larger than 1 MiB")
	}
	parsed, err := clientcmd.Load(data)
	if err != nil {
		// The parser's message may quote the file: it is not passed on, not even as a cause.
		return nil, fault.New(enginev1.Fault_INVALID, "the kubeconfig cannot be read: it is not YAML or JSON of kind Config")
	}
	if len(parsed.Contexts) == 0 && len(parsed.Clusters) == 0 {
		return nil, fault.New(enginev1.Fault_INVALID, "the kubeconfig cannot be read: it has no clusters and no contexts")
	}
	return parsed, nil
}

// pick finds the cluster and the user of a context; a context may do without a user.
func pick(parsed *clientcmdapi.Config, name string) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	if name == "" {
		return nil, nil, fault.New(enginev1.Fault_INVALID, "the kubeconfig has no current-context")
	}
	context := parsed.Contexts[name]
	if context == nil {
		return nil, nil, fault.New(enginev1.Fault_INVALID, "the kubeconfig does not have the context it is to be used with")
	}
	cluster := parsed.Clusters[context.Cluster]
	if cluster == nil || cluster.Server == "" {
		return nil, nil, fault.New(enginev1.Fault_INVALID, "the kubeconfig's context names a cluster without a server")
	}
	user := parsed.AuthInfos[context.AuthInfo]
	if user == nil {
		if context.AuthInfo != "" {
			return nil, nil, fault.New(enginev1.Fault_INVALID, "the kubeconfig's context names a user that is not in it")
		}
		user = clientcmdapi.NewAuthInfo()
	}
	return cluster, user, nil
}

// whitelist copies what anyone may use of the chosen context, and refuses the rest by name. What is not copied
// here cannot have an effect, whatever later versions of the format add.
func whitelist(parsed *clientcmdapi.Config, name string) (*clientcmdapi.Config, error) {
	cluster, user, err := pick(parsed, name)
	if err != nil {
		return nil, err
	}
	if err := refuse(cluster, user); err != nil {
		return nil, err
	}
	if err := checkPEM(cluster, user); err != nil {
		return nil, err
	}
	clean := clientcmdapi.NewConfig()
	clean.CurrentContext = chosen
	clean.Contexts[chosen] = &clientcmdapi.Context{Cluster: chosen, AuthInfo: chosen}
	clean.Clusters[chosen] = &clientcmdapi.Cluster{
		Server:                   cluster.Server,
		TLSServerName:            cluster.TLSServerName,
		CertificateAuthorityData: cluster.CertificateAuthorityData,
		ProxyURL:                 cluster.ProxyURL,
	}
	clean.AuthInfos[chosen] = &clientcmdapi.AuthInfo{
		ClientCertificateData: user.ClientCertificateData,
		ClientKeyData:         user.ClientKeyData,
		Token:                 user.Token,
		Username:              user.Username,
		Password:              user.Password,
		Impersonate:           user.Impersonate,
		ImpersonateGroups:     slices.Clone(user.ImpersonateGroups),
	}
	return clean, nil
}

const (
	identityWay = "set identity in the ProviderConfig, or have the operator allow such kubeconfigs"
	dataWay     = "put the content itself into the kubeconfig, or have the operator allow such kubeconfigs"
	trustWay    = "give certificate-authority-data (and tls-server-name if the name differs), or have the operator allow such kubeconfigs"
	actWay      = "use as and as-groups only, or have the operator allow such kubeconfigs"
)

// refuse names the first thing only the operator's own kubeconfigs may use, and the two ways out.
func refuse(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	for _, rule := range []struct {
		used bool
		what string
		way  string
	}{
		{user.Exec != nil, "exec", identityWay},
		{user.AuthProvider != nil, "auth-provider", identityWay},
		{user.TokenFile != "", "tokenFile", dataWay},
		{user.ClientCertificate != "", "client-certificate", dataWay},
		{user.ClientKey != "", "client-key", dataWay},
		{cluster.CertificateAuthority != "", "certificate-authority", dataWay},
		{cluster.InsecureSkipTLSVerify, "insecure-skip-tls-verify", trustWay},
		{user.ImpersonateUID != "", "as-uid", actWay},
		{len(user.ImpersonateUserExtra) > 0, "as-user-extra", actWay},
	} {
		if rule.used {
			return fault.New(enginev1.Fault_INVALID, "the kubeconfig uses %s, which is not allowed here: %s", rule.what, rule.way)
		}
	}
	if slices.Contains(user.ImpersonateGroups, mastersGroup) {
		return fault.New(enginev1.Fault_INVALID, "the kubeconfig uses as-groups with %s, which is never allowed: name other groups, or use credentials that have the rights themselves", mastersGroup)
	}
	return nil
}

// checkPEM says which of the embedded files is broken, where client-go would only say that something is.
func checkPEM(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	if data := cluster.CertificateAuthorityData; len(data) > 0 && !x509.NewCertPool().AppendCertsFromPEM(data) {
		return fault.New(enginev1.Fault_INVALID, "the kubeconfig's certificate-authority-data is not a PEM certificate")
	}
	certificate, key := user.ClientCertificateData, user.ClientKeyData
	if (len(certificate) > 0) != (len(key) > 0) {
		return fault.New(enginev1.Fault_INVALID, "the kubeconfig has only one of client-certificate-data and client-key-data, and both are needed")
	}
	if len(certificate) > 0 {
		if _, err := tls.X509KeyPair(certificate, key); err != nil {
			return fault.New(enginev1.Fault_INVALID, "the kubeconfig's client-certificate-data and client-key-data are not a matching PEM pair")
		}
	}
	return nil
}
