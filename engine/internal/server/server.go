// Package server is the contract's door: each verb has a file, checks and maps its request, and calls the
// package that knows.
//
// The rule to keep: no logic here, and every error leaves through fault.ToStatus.
package server

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilothouse-dev/pilothouse/engine/internal/chart"
	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/helm"
	"github.com/pilothouse-dev/pilothouse/engine/internal/observe"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// Contract is the version of the contract this engine speaks.
const Contract = 4

// Server implements the engine's verbs.
type Server struct {
	enginev1.UnimplementedEngineServer

	Clusters  *cluster.Registry
	Observers *observe.Hub
	Charts    *chart.Store
	Helm      *helm.Runner
	Version   string
	Guard     *egress.Guard // of the Http verb; what Clusters and Charts have is theirs
}

// target finds what an object verb is about.
func (s *Server) target(id string, resource *enginev1.Resource, namespace string, metadataOnly bool) (*cluster.Cluster, raw.Target, error) {
	at, err := s.Clusters.Get(id)
	if err != nil {
		return nil, raw.Target{}, err
	}
	if resource.GetPlural() == "" && resource.GetKind() != "" {
		kind := schema.GroupKind{Group: resource.GetGroup(), Kind: resource.GetKind()}
		mapping, err := at.Mapper().RESTMapping(kind, resource.GetVersion())
		if err != nil {
			return nil, raw.Target{}, fault.FromAPI(err)
		}
		if mapping.Scope.Name() == meta.RESTScopeNameRoot {
			namespace = ""
		}
		resource = &enginev1.Resource{
			Group: mapping.Resource.Group, Version: mapping.Resource.Version, Plural: mapping.Resource.Resource,
		}
	}
	target, err := raw.TargetOf(resource, namespace, metadataOnly)
	return at, target, err
}
