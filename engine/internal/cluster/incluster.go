package cluster

import (
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const (
	// serviceAccountDir is where every pod finds its account.
	serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	// serviceAccountVariable names another directory with the same files; client-go's own reader knows only that one.
	serviceAccountVariable = "PILOTHOUSE_SERVICE_ACCOUNT"
)

// inCluster reads the credentials of the pod this runs in. The token stays a file: the kubelet renews it.
func inCluster() (*rest.Config, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, fault.New(enginev1.Fault_INVALID, "no kubeconfig was given, and this is no pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set): use --kubeconfig")
	}
	dir := os.Getenv(serviceAccountVariable)
	if dir == "" {
		dir = serviceAccountDir
	}
	token, authority := filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	for _, file := range []string{token, authority} {
		if _, err := os.ReadFile(file); err != nil {
			return nil, fault.Wrap(enginev1.Fault_INVALID, err, "the pod's service account cannot be used: %v", err)
		}
	}
	return &rest.Config{
		Host:            "https://" + net.JoinHostPort(host, port),
		TLSClientConfig: rest.TLSClientConfig{CAFile: authority},
		BearerTokenFile: token,
	}, nil
}
