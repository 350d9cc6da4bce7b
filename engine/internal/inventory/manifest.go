package inventory

import (
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// head is what FromManifest reads of a document; the rest is skipped.
type head struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name        string         `yaml:"name"`
		Namespace   string         `yaml:"namespace"`
		Annotations map[string]any `yaml:"annotations"`
	} `yaml:"metadata"`
	Items []head `yaml:"items"`
}

// FromManifest lists the objects of a rendered manifest, each once, in the manifest's order. Namespaces are
// defaulted by scope; CRDs are left out (they outlive releases), and so are hooks. A document that cannot be
// read is skipped: the API server would have refused it. The mapper may be nil.
func FromManifest(manifest, releaseNamespace string, mapper meta.RESTMapper) []Ref {
	var (
		refs   []Ref
		seen   = map[Ref]bool{}
		scopes = map[schema.GroupVersionKind]bool{}
		add    func(head)
	)
	add = func(h head) {
		if strings.HasSuffix(h.Kind, "List") && h.Metadata.Name == "" {
			for _, item := range h.Items {
				add(item)
			}
			return
		}
		gvk := schema.FromAPIVersionAndKind(h.APIVersion, h.Kind)
		if h.Kind == "" || h.Metadata.Name == "" || isCRD(gvk) || h.Metadata.Annotations["helm.sh/hook"] != nil {
			return
		}
		namespaced, known := scopes[gvk]
		if !known {
			namespaced = isNamespaced(gvk, mapper)
			scopes[gvk] = namespaced
		}
		namespace := ""
		if namespaced {
			if namespace = h.Metadata.Namespace; namespace == "" {
				namespace = releaseNamespace
			}
		}
		if ref := NewRef(h.APIVersion, h.Kind, namespace, h.Metadata.Name); !seen[ref] {
			seen[ref] = true
			refs = append(refs, ref)
		}
	}
	for _, document := range documents(manifest) {
		var h head
		if yaml.Unmarshal([]byte(document), &h) == nil {
			add(h)
		}
	}
	return refs
}

// documents splits a stream of YAML documents without parsing it, so that one broken document costs only itself.
func documents(manifest string) []string {
	var out []string
	start := 0
	for at := 0; at < len(manifest); {
		end := strings.IndexByte(manifest[at:], '\n')
		if end < 0 {
			end = len(manifest)
		} else {
			end += at + 1
		}
		line := strings.TrimRight(manifest[at:end], " \t\r\n")
		if line == "---" || strings.HasPrefix(line, "--- ") {
			out = append(out, manifest[start:at])
			start = end
		}
		at = end
	}
	return append(out, manifest[start:])
}

func isCRD(gvk schema.GroupVersionKind) bool {
	return gvk.Group == "apiextensions.k8s.io" && gvk.Kind == "CustomResourceDefinition"
}

// isNamespaced asks discovery; a kind it does not know is taken for namespaced unless it is a well-known
// cluster-scoped one.
func isNamespaced(gvk schema.GroupVersionKind, mapper meta.RESTMapper) bool {
	if clusterScoped[gvk.GroupKind()] {
		return false
	}
	if mapper == nil {
		return true
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	return err != nil || mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

var clusterScoped = map[schema.GroupKind]bool{
	{Kind: "Namespace"}:        true,
	{Kind: "Node"}:             true,
	{Kind: "PersistentVolume"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                         true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                  true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:        true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: true,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                             true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                                true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                               true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                                   true,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:                                      true,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                                      true,
}
