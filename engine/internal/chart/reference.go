package chart

import (
	"net/url"
	"strings"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// reference is an OCI address taken apart: oci://host/path, :tag, @digest.
type reference struct {
	path   string // host and repository
	tag    string
	digest string
}

// referenceOf reads every form in which a chart in a registry can be named. A digest may stand in the URL, in the
// request, or in both if they agree.
func referenceOf(source *enginev1.ChartSource) (reference, error) {
	where := location(source)
	_, path, _ := strings.Cut(where, "://")
	ref := reference{path: path, digest: source.GetDigest()}
	if source.GetUrl() == "" {
		if source.GetName() == "" {
			return reference{}, invalid("a chart from %s needs a name", shown(where))
		}
		ref.path = strings.TrimSuffix(path, "/") + "/" + source.GetName()
		return ref, nil
	}
	if rest, digest, found := strings.Cut(ref.path, "@"); found {
		pin, err := normal(digest)
		if err != nil {
			return reference{}, invalid("%s: what follows the @ is not a sha256 digest", shown(where))
		}
		if ref.digest != "" && ref.digest != pin {
			return reference{}, invalid("the chart's url says %s, but its digest says %s", pin, ref.digest)
		}
		ref.path, ref.digest = rest, pin
	}
	if slash, colon := strings.LastIndex(ref.path, "/"), strings.LastIndex(ref.path, ":"); colon > slash {
		ref.path, ref.tag = ref.path[:colon], ref.path[colon+1:]
	}
	return ref, nil
}

// tags are the tags worth asking for before listing all of them.
func (r reference) tags(wanted string) []string {
	if r.tag != "" {
		return []string{r.tag}
	}
	if _, ok := exact(wanted); !ok {
		return nil
	}
	tag := strings.ReplaceAll(wanted, "+", "_") // tags cannot hold a plus
	other := "v" + tag
	if strings.HasPrefix(tag, "v") {
		other = tag[1:]
	}
	return []string{tag, other}
}

// resolveReference turns an index's chart URL, absolute or relative to the repository, into a full one. The
// repository's query is kept for relative ones: that is how signed repositories pass their token.
func resolveReference(home *url.URL, ref string) (*url.URL, error) {
	parsed, err := url.Parse(ref)
	if err != nil {
		return nil, err
	}
	if parsed.IsAbs() {
		return parsed, nil
	}
	base := *home
	base.User = nil
	base.Path = strings.TrimSuffix(base.Path, "/") + "/"
	base.RawPath = ""
	resolved := base.ResolveReference(parsed)
	if resolved.RawQuery == "" && resolved.Host == home.Host {
		resolved.RawQuery = home.RawQuery
	}
	return resolved, nil
}
