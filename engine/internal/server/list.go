package server

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/raw"
)

// listPage is how many objects are asked of the API server at once.
const listPage = 500

// List reads all objects of a resource, in pages.
func (s *Server) List(request *enginev1.ListRequest, stream enginev1.Engine_ListServer) error {
	ctx := stream.Context()
	at, target, err := s.target(request.GetCluster(), request.GetResource(), request.GetNamespace(), request.GetMetadataOnly())
	if err != nil {
		return fault.ToStatus(ctx, err)
	}
	options := metav1.ListOptions{
		LabelSelector: request.GetLabelSelector(), FieldSelector: request.GetFieldSelector(), Limit: listPage,
	}
	for {
		page, err := raw.List(ctx, at.REST(), target, options)
		if token, ok := laterToken(err); ok {
			options.Continue = token
			continue
		}
		if err != nil {
			return fault.ToStatus(ctx, target.Explain(err))
		}
		if err := sendPage(stream, page.Items); err != nil {
			return err
		}
		if page.Continue == "" {
			return nil
		}
		options.Continue = page.Continue
	}
}

// laterToken finds, in "your page is too old", the token that goes on from the same place in today's list.
func laterToken(err error) (string, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsResourceExpired(err) {
		return "", false
	}
	token := status.Status().ListMeta.Continue
	return token, token != ""
}

// sendPage splits a page so that no message comes near the size limit.
func sendPage(stream enginev1.Engine_ListServer, items [][]byte) error {
	for len(items) > 0 {
		count, size := 0, 0
		for count < len(items) && count < maxChanges && (count == 0 || size+len(items[count]) <= maxBytes) {
			size += len(items[count])
			count++
		}
		if err := stream.Send(&enginev1.ListPage{Objects: items[:count]}); err != nil {
			return err
		}
		items = items[count:]
	}
	return nil
}
