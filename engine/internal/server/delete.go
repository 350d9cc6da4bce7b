package server

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// delete asks for one object to be deleted; finalizers may keep it for a while.
func (s *Server) delete(ctx context.Context, request *enginev1.DeleteRequest) error {
	at, target, err := s.target(request.GetCluster(), request.GetResource(), request.GetNamespace(), false)
	if err != nil {
		return err
	}
	if request.GetName() == "" { // the path without a name is that of the whole collection
		return fault.New(enginev1.Fault_INVALID, "a delete needs a name")
	}
	remove, err := target.Request(at.REST().Delete(), request.GetName(), "")
	if err != nil {
		return err
	}
	body, err := json.Marshal(deleteOptions(request))
	if err != nil {
		return err
	}
	if _, err := raw.Do(ctx, remove.SetHeader("Content-Type", "application/json").Body(body)); err != nil {
		return target.Explain(err)
	}
	wrote(at, target, false)
	return nil
}

func deleteOptions(request *enginev1.DeleteRequest) *metav1.DeleteOptions {
	options := &metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}}
	if uid := types.UID(request.GetUid()); uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	if policy := metav1.DeletionPropagation(request.GetPropagation()); policy != "" {
		options.PropagationPolicy = &policy
	}
	return options
}
