package chart

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"helm.sh/helm/v4/pkg/registry"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// A manifest is small; a larger one is not a chart's.
const maxManifest = 4 << 20

// fromRegistry pulls a chart by tag or digest. It speaks through the library Helm's own registry client is made
// of, because that client reads credential files of the machine and pulls without a bound.
func (s *Store) fromRegistry(ctx context.Context, source *enginev1.ChartSource) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	repository, reference, err := s.repositoryOf(source)
	if err != nil {
		return nil, err
	}
	manifest, err := s.manifest(ctx, repository, reference, source)
	if err != nil {
		return nil, err
	}
	layer, err := chartLayer(ctx, repository, manifest)
	if err != nil {
		return nil, err
	}
	if pin := source.GetDigest(); pin != "" && pin != layer.Digest.String() && pin != manifest.Digest.String() {
		return nil, invalid("the chart from %s is %s (manifest %s), but the pin says %s",
			shown(location(source)), layer.Digest, manifest.Digest, pin)
	}
	if layer.Size > maxPacked {
		return nil, invalid("the chart is larger than 10 MiB packed (from %s)", shown(location(source)))
	}
	packed, err := content.FetchAll(ctx, repository.Blobs(), layer)
	if err != nil {
		return nil, registryFault(err, source)
	}
	return packed, nil
}

// repositoryOf prepares the registry's repository, with the request's credentials in memory only.
func (s *Store) repositoryOf(source *enginev1.ChartSource) (*remote.Repository, string, error) {
	path := strings.TrimPrefix(location(source), "oci://")
	reference := ""
	if source.GetUrl() == "" {
		path += "/" + source.GetName()
	} else if rest, digest, found := strings.Cut(path, "@"); found {
		path, reference = rest, digest
		if slash, colon := strings.LastIndex(path, "/"), strings.LastIndex(path, ":"); colon > slash {
			path = path[:colon] // a tag beside a digest says nothing more
		}
	} else if slash, colon := strings.LastIndex(path, "/"), strings.LastIndex(path, ":"); colon > slash {
		path, reference = path[:colon], path[colon+1:]
	}
	repository, err := remote.NewRepository(path)
	if err != nil {
		return nil, "", invalid("%q is not an OCI chart reference", shown(location(source)))
	}
	client, err := s.http.of(source)
	if err != nil {
		return nil, "", err
	}
	repository.PlainHTTP = source.GetPlainHttp()
	repository.Client = &auth.Client{
		Client: client,
		Cache:  auth.NewCache(), // of this request: tokens are not shared between releases
		Credential: auth.StaticCredential(repository.Reference.Registry, auth.Credential{
			Username: source.GetUsername(), Password: source.GetPassword(),
		}),
	}
	return repository, reference, nil
}

// manifest resolves the reference: a digest, the tag of an exact version, or the best of all tags.
func (s *Store) manifest(ctx context.Context, repository *remote.Repository, reference string, source *enginev1.ChartSource) (ocispec.Descriptor, error) {
	wanted := source.GetVersion()
	if reference == "" && wanted == "" && source.GetDigest() != "" {
		// A pin alone: registries address manifests by digest, so it may be one.
		if found, err := repository.Resolve(ctx, source.GetDigest()); err == nil {
			return found, nil
		}
	}
	for _, tag := range candidates(reference, wanted) {
		found, err := repository.Resolve(ctx, tag)
		if err == nil {
			return found, nil
		}
		if !isNotFound(err) {
			return ocispec.Descriptor{}, registryFault(err, source)
		}
	}
	if reference != "" {
		return ocispec.Descriptor{}, notFound("%s does not exist", shown(location(source)))
	}
	var tags []string
	if err := repository.Tags(ctx, "", func(page []string) error { tags = append(tags, page...); return nil }); err != nil {
		if isNotFound(err) {
			return ocispec.Descriptor{}, notFound("there is no chart %q in %s", source.GetName(), shown(location(source)))
		}
		return ocispec.Descriptor{}, registryFault(err, source)
	}
	versions := make([]string, len(tags))
	for i, tag := range tags {
		versions[i] = strings.ReplaceAll(tag, "_", "+") // tags cannot hold a plus
	}
	at := pick(versions, wanted)
	if at < 0 {
		return ocispec.Descriptor{}, noVersion(source.GetName(), wanted, shown(location(source)), versions)
	}
	found, err := repository.Resolve(ctx, tags[at])
	if err != nil {
		return ocispec.Descriptor{}, registryFault(err, source)
	}
	return found, nil
}

// candidates are the tags worth asking for before listing all of them.
func candidates(reference, wanted string) []string {
	if reference != "" {
		return []string{reference}
	}
	if _, ok := exact(wanted); !ok {
		return nil
	}
	tag := strings.ReplaceAll(wanted, "+", "_")
	other := "v" + tag
	if strings.HasPrefix(tag, "v") {
		other = tag[1:]
	}
	return []string{tag, other}
}

// chartLayer finds the packed chart in a manifest, through an index of manifests if there is one.
func chartLayer(ctx context.Context, repository *remote.Repository, found ocispec.Descriptor) (ocispec.Descriptor, error) {
	where := "oci://" + repository.Reference.Registry + "/" + repository.Reference.Repository
	for range 2 {
		if found.Size > maxManifest {
			return ocispec.Descriptor{}, invalid("the manifest of %s is too large for a chart", where)
		}
		body, err := content.FetchAll(ctx, repository, found)
		if err != nil {
			return ocispec.Descriptor{}, unavailable("%s does not answer: %s", where, reason(err))
		}
		var manifest struct {
			Layers    []ocispec.Descriptor `json:"layers"`
			Manifests []ocispec.Descriptor `json:"manifests"`
		}
		if err := json.Unmarshal(body, &manifest); err != nil {
			return ocispec.Descriptor{}, invalid("the manifest of %s cannot be read", where)
		}
		at := slices.IndexFunc(manifest.Layers, func(d ocispec.Descriptor) bool {
			return d.MediaType == registry.ChartLayerMediaType || d.MediaType == registry.LegacyChartLayerMediaType
		})
		if at >= 0 {
			return manifest.Layers[at], nil
		}
		if len(manifest.Manifests) == 0 {
			break
		}
		found = manifest.Manifests[0]
	}
	return ocispec.Descriptor{}, invalid("%s is not a chart: its manifest has no chart layer", where)
}

func isNotFound(err error) bool {
	var answer *errcode.ErrorResponse
	return errors.Is(err, errdef.ErrNotFound) || (errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound)
}

// registryFault translates a registry's answer. The library puts URLs into its errors, queries included: only
// the status and the registry's own words are repeated.
func registryFault(err error, source *enginev1.ChartSource) error {
	if errors.Is(err, egress.ErrRefused) {
		return err
	}
	where := shown(location(source))
	var answer *errcode.ErrorResponse
	if errors.As(err, &answer) {
		return statusFault(answer.StatusCode, location(source))
	}
	if isNotFound(err) {
		return notFound("%s does not exist", where)
	}
	if errors.Is(err, auth.ErrBasicCredentialNotFound) {
		return unavailable("%s wants credentials, and none were given", where)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) || errors.Is(err, context.DeadlineExceeded) {
		return unavailable("%s does not answer: %s", where, reason(err))
	}
	return unavailable("%s cannot be read: %s", where, oneLine(err.Error()))
}
