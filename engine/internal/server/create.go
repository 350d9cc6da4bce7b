package server

import (
	"context"

	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// create makes one object.
func (s *Server) create(ctx context.Context, request *enginev1.CreateRequest) ([]byte, error) {
	at, target, err := s.target(request.GetCluster(), request.GetResource(), request.GetNamespace(), false)
	if err != nil {
		return nil, err
	}
	post, err := target.Request(at.REST().Post(), "", "")
	if err != nil {
		return nil, err
	}
	post = post.SetHeader("Content-Type", "application/json").Body(request.GetObject())
	if request.GetDryRun() {
		post = post.Param("dryRun", "All")
	}
	object, err := raw.Do(ctx, post)
	if err != nil {
		return nil, target.Explain(err)
	}
	wrote(at, target, request.GetDryRun())
	return object, nil
}

// wrote makes the cluster look again at what it serves after a CRD was written.
func wrote(at *cluster.Cluster, target raw.Target, dryRun bool) {
	if !dryRun && target.Group == "apiextensions.k8s.io" && target.Plural == "customresourcedefinitions" {
		at.InvalidateDiscovery()
	}
}
