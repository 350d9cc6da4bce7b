package chart

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"helm.sh/helm/v4/pkg/registry"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const (
	// A manifest is small; a larger one is not a chart's.
	maxManifest = 4 << 20
	maxTags     = 100_000
)

// registries is the source for oci://. It speaks through the library Helm's own registry client is made of,
// because that client reads credential files of the machine and pulls without a bound.
type registries struct{}

// Locate resolves a tag, a digest or a version to one manifest.
func (registries) Locate(ctx context.Context, ask *Ask) (*Located, error) {
	ref, err := referenceOf(ask.ChartSource)
	if err != nil {
		return nil, err
	}
	repository, err := ask.repository(ref)
	if err != nil {
		return nil, err
	}
	manifest, err := ask.manifest(ctx, repository, ref)
	if err != nil {
		return nil, err
	}
	layers := func(ctx context.Context) (chart, provenance ocispec.Descriptor, err error) {
		return chartLayers(ctx, repository, manifest, ask.ChartSource)
	}
	return &Located{
		Key:      repository.Reference.Registry + "/" + repository.Reference.Repository + "@" + manifest.Digest.String(),
		Manifest: manifest.Digest.String(), Signatures: repository,
		Fetch: func(ctx context.Context) (*Package, error) {
			layer, _, err := layers(ctx)
			if err != nil {
				return nil, err
			}
			packed, err := blob(ctx, repository, layer, maxPacked, ask.ChartSource)
			return &Package{Packed: packed}, err
		},
		Provenance: func(ctx context.Context) ([]byte, error) {
			_, layer, err := layers(ctx)
			if err != nil {
				return nil, err
			}
			if layer.Digest == "" {
				return nil, notFound("%s has no provenance file", shown(location(ask.ChartSource)))
			}
			return blob(ctx, repository, layer, maxProvenance, ask.ChartSource)
		},
	}, nil
}

// Versions names the repository's tags, as versions.
func (registries) Versions(ctx context.Context, ask *Ask, _ time.Duration) ([]string, error) {
	ref, err := referenceOf(ask.ChartSource)
	if err != nil {
		return nil, err
	}
	repository, err := ask.repository(ref)
	if err != nil {
		return nil, err
	}
	tags, err := ask.tags(ctx, repository)
	return versionsOf(tags), err
}

// Digest tells the digest of one version's chart layer.
func (registries) Digest(ctx context.Context, ask *Ask, version string) (string, error) {
	source := tidy(ask.ChartSource)
	source.Version, source.Digest = version, ""
	one := &Ask{ChartSource: source, Network: ask.Network}
	ref, err := referenceOf(source)
	if err != nil {
		return "", err
	}
	repository, err := one.repository(ref)
	if err != nil {
		return "", err
	}
	manifest, err := one.manifest(ctx, repository, ref)
	if err != nil {
		return "", err
	}
	layer, _, err := chartLayers(ctx, repository, manifest, source)
	return layer.Digest.String(), err
}

// repository prepares the registry's repository, with the request's credentials in memory only.
func (a *Ask) repository(ref reference) (*remote.Repository, error) {
	repository, err := remote.NewRepository(ref.path)
	if err != nil {
		return nil, invalid("%q is not an OCI chart reference", shown(location(a.ChartSource)))
	}
	client, err := a.Network.Client(a.ChartSource)
	if err != nil {
		return nil, err
	}
	host := repository.Reference.Registry
	who, err := loginFor(a.ChartSource, &url.URL{Scheme: "oci", Host: host, Path: repository.Reference.Repository})
	if err != nil {
		return nil, err
	}
	repository.PlainHTTP = a.GetPlainHttp()
	repository.MaxMetadataBytes = maxManifest
	repository.Client = a.registryClient(client, host, who)
	return repository, nil
}

// manifest resolves a reference: a digest, a tag, the tag of an exact version, or the best of all tags.
func (a *Ask) manifest(ctx context.Context, repository *remote.Repository, ref reference) (ocispec.Descriptor, error) {
	if ref.digest != "" {
		// Registries address manifests by digest. A pin may also be of the packed chart: then the tag leads to it.
		found, err := repository.Resolve(ctx, ref.digest)
		if err == nil {
			return found, nil
		}
		if !isNotFound(err) {
			return ocispec.Descriptor{}, registryFault(err, a.ChartSource)
		}
		if strings.Contains(a.GetUrl(), "@") {
			return ocispec.Descriptor{}, notFound("%s does not exist", shown(location(a.ChartSource)))
		}
	}
	for _, tag := range ref.tags(a.GetVersion()) {
		found, err := repository.Resolve(ctx, tag)
		if err == nil {
			return found, nil
		}
		if !isNotFound(err) {
			return ocispec.Descriptor{}, registryFault(err, a.ChartSource)
		}
	}
	if ref.tag != "" {
		return ocispec.Descriptor{}, notFound("%s does not exist", shown(location(a.ChartSource)))
	}
	tags, err := a.tags(ctx, repository)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	versions := versionsOf(tags)
	at := pick(versions, a.GetVersion())
	if at < 0 {
		return ocispec.Descriptor{}, noVersion(a.GetName(), a.GetVersion(), shown(location(a.ChartSource)), versions)
	}
	found, err := repository.Resolve(ctx, tags[at])
	if err != nil {
		return ocispec.Descriptor{}, registryFault(err, a.ChartSource)
	}
	return found, nil
}

func (a *Ask) tags(ctx context.Context, repository *remote.Repository) ([]string, error) {
	var tags []string
	err := repository.Tags(ctx, "", func(page []string) error {
		if tags = append(tags, page...); len(tags) > maxTags {
			return invalid("%s has more than %d tags", shown(location(a.ChartSource)), maxTags)
		}
		return nil
	})
	if err != nil {
		if isNotFound(err) {
			return nil, notFound("there is no chart %q in %s", a.GetName(), shown(location(a.ChartSource)))
		}
		return nil, registryFault(err, a.ChartSource)
	}
	return tags, nil
}

func versionsOf(tags []string) []string {
	versions := make([]string, len(tags))
	for i, tag := range tags {
		versions[i] = strings.ReplaceAll(tag, "_", "+")
	}
	return versions
}

// chartLayers finds the packed chart and its provenance in a manifest, through an index of manifests if there is one.
func chartLayers(ctx context.Context, repository *remote.Repository, found ocispec.Descriptor, source *enginev1.ChartSource) (chart, provenance ocispec.Descriptor, err error) {
	where := "oci://" + repository.Reference.Registry + "/" + repository.Reference.Repository
	for range 2 {
		body, err := blobOf(ctx, repository, found, maxManifest, where+": its manifest", source)
		if err != nil {
			return chart, provenance, err
		}
		var manifest struct {
			Layers    []ocispec.Descriptor `json:"layers"`
			Manifests []ocispec.Descriptor `json:"manifests"`
		}
		if err := json.Unmarshal(body, &manifest); err != nil {
			return chart, provenance, invalid("the manifest of %s cannot be read", where)
		}
		for _, layer := range slices.Backward(manifest.Layers) {
			switch layer.MediaType {
			case registry.ChartLayerMediaType, registry.LegacyChartLayerMediaType:
				chart = layer
			case registry.ProvLayerMediaType:
				provenance = layer
			}
		}
		if chart.Digest != "" {
			return chart, provenance, nil
		}
		if len(manifest.Manifests) == 0 {
			break
		}
		found = manifest.Manifests[0]
	}
	return chart, provenance, invalid("%s is not a chart: its manifest has no chart layer", where)
}

func blob(ctx context.Context, repository *remote.Repository, layer ocispec.Descriptor, limit int64, source *enginev1.ChartSource) ([]byte, error) {
	return blobOf(ctx, repository.Blobs(), layer, limit, "the chart from "+shown(location(source)), source)
}

// blobOf fetches one blob; the library checks size and digest as it reads.
func blobOf(ctx context.Context, from content.Fetcher, found ocispec.Descriptor, limit int64, what string, source *enginev1.ChartSource) ([]byte, error) {
	if found.Size > limit {
		return nil, invalid("%s is larger than %d MiB", what, limit>>20)
	}
	body, err := content.FetchAll(ctx, from, found)
	if err != nil {
		return nil, registryFault(err, source)
	}
	return body, nil
}

func isNotFound(err error) bool {
	var answer *errcode.ErrorResponse
	return errors.Is(err, errdef.ErrNotFound) || (errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound)
}

// registryFault translates a registry's answer. The library puts URLs into its errors, queries included: only
// the status and the registry's own words are repeated.
func registryFault(err error, source *enginev1.ChartSource) error {
	where := shown(location(source))
	var ours *fault.Error
	var answer *errcode.ErrorResponse
	var wrapped *url.Error
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &answer):
		return statusFault(answer.StatusCode, location(source))
	case isNotFound(err):
		return notFound("%s does not exist", where)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return unavailable("%s wants credentials, and none were given", where)
	case errors.Is(err, errIdle):
		return unavailable("%s broke off: %s", where, reason(err))
	case errors.As(err, &wrapped) || errors.Is(err, context.DeadlineExceeded):
		return unavailable("%s does not answer: %s", where, reason(err))
	default:
		return unavailable("%s cannot be read: %s", where, oneLine(err.Error()))
	}
}
