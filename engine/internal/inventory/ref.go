// Package inventory knows which objects a revision of a release consists of.
//
// An inventory is read once per revision: from the action that made it, from the disk cache, or by decoding
// the release record. The rule to keep: nothing here holds a manifest, only names.
package inventory

import (
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// Ref names one object. Namespace is empty for cluster-scoped objects.
type Ref struct {
	APIVersion string `json:"v"`
	Kind       string `json:"k"`
	Namespace  string `json:"ns,omitempty"`
	Name       string `json:"n"`
}

// NewRef makes a Ref whose common strings are shared: a thousand releases have few kinds and namespaces.
func NewRef(apiVersion, kind, namespace, name string) Ref {
	return Ref{APIVersion: intern(apiVersion), Kind: intern(kind), Namespace: intern(namespace), Name: name}
}

// GVK is the kind the Ref is of.
func (r Ref) GVK() schema.GroupVersionKind { return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind) }

// Proto is the Ref as it crosses to the brain.
func (r Ref) Proto() *enginev1.Ref {
	return &enginev1.Ref{ApiVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// Protos maps a whole inventory.
func Protos(refs []Ref) []*enginev1.Ref {
	out := make([]*enginev1.Ref, len(refs))
	for i, ref := range refs {
		out[i] = ref.Proto()
	}
	return out
}

func intern(s string) string { return unique.Make(s).Value() }
