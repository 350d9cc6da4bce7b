package supervise

import (
	"encoding/base64"
	"fmt"
)

const kubeconfigTemplate = `apiVersion: v1
kind: Config
current-context: %[1]s
clusters:
- name: %[1]s
  cluster:
    server: %[2]s
    certificate-authority-data: %[3]s
contexts:
- name: %[1]s
  context:
    cluster: %[1]s
    user: %[1]s-%[4]s
users:
- name: %[1]s-%[4]s
  user:
    client-certificate-data: %[5]s
    client-key-data: %[6]s
`

// writeKubeconfigs writes the administrator's kubeconfig, and one for each component that is a client.
func writeKubeconfigs(home *home, record record, identities identities) error {
	for user, path := range map[string]string{
		"admin":                   record.Kubeconfig,
		"kube-controller-manager": home.path("kube-controller-manager.kubeconfig"),
		"kube-scheduler":          home.path("kube-scheduler.kubeconfig"),
		"kwok":                    home.path("kwok.kubeconfig"),
	} {
		identity := identities[user]
		content := fmt.Sprintf(kubeconfigTemplate, record.Name, record.Server,
			encode(identities["ca"].certificate), user, encode(identity.certificate), encode(identity.key))
		if err := writeFile(path, []byte(content)); err != nil {
			return err
		}
	}
	return nil
}

func encode(content []byte) string { return base64.StdEncoding.EncodeToString(content) }
