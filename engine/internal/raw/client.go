package raw

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const (
	jsonType     = "application/json"
	metadataType = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," + jsonType
	metadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," + jsonType
)

// Target is a resource in one namespace, or in all.
type Target struct {
	Group, Version, Plural, Namespace string
	// MetadataOnly asks the API server for nothing else.
	MetadataOnly bool
}

// TargetOf checks and maps what a request names. Anything that is not a plain path segment could reach
// another resource, so it is refused.
func TargetOf(resource *enginev1.Resource, namespace string, metadataOnly bool) (Target, error) {
	t := Target{
		Group: resource.GetGroup(), Version: resource.GetVersion(), Plural: resource.GetPlural(),
		Namespace: namespace, MetadataOnly: metadataOnly,
	}
	if t.Version == "" || t.Plural == "" {
		return t, fault.New(enginev1.Fault_INVALID, "a request needs a resource with a version and a plural name")
	}
	return t, segments(t.Group, t.Version, t.Plural, t.Namespace)
}

func segments(names ...string) error {
	for _, name := range names {
		if problems := content.IsPathSegmentName(name); len(problems) > 0 {
			return fault.New(enginev1.Fault_INVALID, "%q cannot be part of a request's path: %s", name, problems[0])
		}
	}
	return nil
}

// Path is the resource's path, followed by the rest's non-empty segments.
func (t Target) Path(rest ...string) []string {
	out := []string{"/api", t.Version}
	if t.Group != "" {
		out = []string{"/apis", t.Group, t.Version}
	}
	if t.Namespace != "" {
		out = append(out, "namespaces", t.Namespace)
	}
	out = append(out, t.Plural)
	for _, segment := range rest {
		if segment != "" {
			out = append(out, segment)
		}
	}
	return out
}

func (t Target) accept(list bool) string {
	switch {
	case !t.MetadataOnly:
		return jsonType
	case list:
		return metadataList
	}
	return metadataType
}

// Request starts a request for one object, or for the resource itself if the name is empty.
func (t Target) Request(request *rest.Request, name, subresource string) (*rest.Request, error) {
	if err := segments(name, subresource); err != nil {
		return nil, err
	}
	return request.AbsPath(t.Path(name, subresource)...).SetHeader("Accept", t.accept(false)), nil
}

// Do runs a request and gives the answer's bytes; errors are faults.
func Do(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	if err := result.Error(); err != nil { // decodes the API server's Status, which Raw does not
		return nil, fault.FromAPI(err)
	}
	data, err := result.Raw()
	if err != nil {
		return nil, fault.FromAPI(err)
	}
	return data, nil
}

// Get reads one object.
func Get(ctx context.Context, client rest.Interface, t Target, name string) ([]byte, error) {
	if name == "" {
		return nil, fault.New(enginev1.Fault_INVALID, "a get needs a name")
	}
	request, err := t.Request(client.Get(), name, "")
	if err != nil {
		return nil, err
	}
	return Do(ctx, request)
}

// Explain makes an error about this target a fault that names what is missing.
func (t Target) Explain(err error) *fault.Error {
	e := fault.FromAPI(err)
	switch {
	case e.Kind == enginev1.Fault_NAMESPACE_MISSING && t.Group == "" && t.Plural == "namespaces":
		e.Kind = enginev1.Fault_NOT_FOUND // the namespace is not where the object would be, but the object itself
	case e.Kind == enginev1.Fault_NOT_FOUND && e.Message == noSuchResource:
		e.Message = fmt.Sprintf("the API server has no resource %s in %s",
			t.Plural, schema.GroupVersion{Group: t.Group, Version: t.Version})
	}
	return e
}

const noSuchResource = "the server could not find the requested resource"

// Page is one page of a list.
type Page struct {
	ResourceVersion, Continue string
	Items                     [][]byte
}

// List reads one page; errors are the API server's own, for reflectors to judge.
func List(ctx context.Context, client rest.Interface, t Target, options metav1.ListOptions) (*Page, error) {
	result := client.Get().AbsPath(t.Path()...).SetHeader("Accept", t.accept(true)).
		SpecificallyVersionedParams(&options, scheme.ParameterCodec, metav1.Unversioned).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	data, err := result.Raw()
	if err != nil {
		return nil, err
	}
	var list struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   metav1.ListMeta   `json:"metadata"`
		Items      []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, err
	}
	page := &Page{ResourceVersion: list.Metadata.ResourceVersion, Continue: list.Metadata.Continue, Items: make([][]byte, len(list.Items))}
	kind := strings.TrimSuffix(list.Kind, "List")
	for i, item := range list.Items {
		page.Items[i] = withKind(item, list.APIVersion, kind)
	}
	return page, nil
}

// Stream opens a watch; errors are the API server's own.
func Stream(ctx context.Context, client rest.Interface, t Target, options metav1.ListOptions) (io.ReadCloser, error) {
	options.Watch = true
	return client.Get().AbsPath(t.Path()...).SetHeader("Accept", t.accept(false)).
		SpecificallyVersionedParams(&options, scheme.ParameterCodec, metav1.Unversioned).Stream(ctx)
}

// Strip is an object's bytes without its managedFields, which the head then gives.
func Strip(data []byte) (Head, []byte, error) { return read(data) }
