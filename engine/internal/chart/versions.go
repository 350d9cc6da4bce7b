package chart

import (
	"strings"

	"github.com/Masterminds/semver/v3"
)

// exact parses a version that names one version; ranges, partial versions and "latest" are not exact.
func exact(wanted string) (*semver.Version, bool) {
	v, err := semver.StrictNewVersion(strings.TrimPrefix(strings.TrimSpace(wanted), "v"))
	return v, err == nil
}

// pick returns the index of the wanted version in the list, or -1. Literal equality wins, then equality as
// semantic versions (`v1.2.0` is `1.2.0`, and `1.2.0+build` will do for it), and anything that is not exact is a
// range: the newest match. Empty means the latest stable version, and only if there is none the latest of all.
func pick(versions []string, wanted string) int {
	wanted = strings.TrimSpace(wanted)
	for i, v := range versions {
		if wanted != "" && v == wanted {
			return i
		}
	}
	if want, ok := exact(wanted); ok {
		same := newest(versions, func(v *semver.Version) bool {
			return v.Equal(want) && v.Metadata() == want.Metadata()
		})
		if same >= 0 || want.Metadata() != "" {
			return same
		}
		return newest(versions, want.Equal)
	}
	constraint, err := semver.NewConstraint(orAny(wanted))
	if err != nil {
		return -1
	}
	if best := newest(versions, constraint.Check); best >= 0 || wanted != "" {
		return best
	}
	return newest(versions, func(*semver.Version) bool { return true })
}

func orAny(wanted string) string {
	if wanted == "" {
		return "*"
	}
	return wanted
}

func newest(versions []string, matches func(*semver.Version) bool) int {
	best := -1
	var top *semver.Version
	for i, text := range versions {
		v, err := semver.NewVersion(text)
		if err != nil || !matches(v) {
			continue
		}
		if top == nil || v.GreaterThan(top) {
			best, top = i, v
		}
	}
	return best
}

// allows says whether a version is one that a query may lead to.
func allows(wanted, version string) bool {
	return wanted == "" || pick([]string{version}, wanted) == 0
}

// isNewer says whether a version comes after another. What is not a version is nobody's successor.
func isNewer(version, than string) bool {
	a, err := semver.NewVersion(version)
	if err != nil {
		return false
	}
	b, err := semver.NewVersion(than)
	return err == nil && a.GreaterThan(b)
}
