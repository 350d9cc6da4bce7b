package chart

import (
	"fmt"
	"strings"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
)

// dependencies names what Chart.yaml promises and charts/ does not hold. Nothing is fetched: what a release is made
// of is decided by whoever packed the chart.
func dependencies(c *chartv2.Chart) error {
	var missing []string
	for _, wanted := range c.Metadata.Dependencies {
		if vendored(c, wanted.Name) == nil {
			missing = append(missing, strings.TrimSpace(wanted.Name+" "+wanted.Version))
		}
	}
	if len(missing) > 0 {
		return invalid("chart %q lacks its dependencies in charts/: %s; run `helm dependency build` before packing it",
			c.Name(), strings.Join(missing, ", "))
	}
	return nil
}

// lockWarnings tells where Chart.lock disagrees with Chart.yaml or with charts/. Helm installs such a chart without
// a word, so it is no fault.
func lockWarnings(c *chartv2.Chart) []string {
	if c.Lock == nil {
		return nil
	}
	locked := map[string]string{}
	var warnings []string
	for _, one := range c.Lock.Dependencies {
		if one == nil {
			continue
		}
		locked[one.Name] = one.Version
		if held := vendored(c, one.Name); held != nil && !allows(one.Version, held.Metadata.Version) {
			warnings = append(warnings, fmt.Sprintf("Chart.lock says %s %s, but charts/ has %s",
				one.Name, one.Version, held.Metadata.Version))
		}
	}
	for _, wanted := range c.Metadata.Dependencies {
		version, found := locked[wanted.Name]
		switch {
		case !found:
			warnings = append(warnings, fmt.Sprintf("Chart.lock does not know %s, which Chart.yaml names", wanted.Name))
		case !allows(wanted.Version, version):
			warnings = append(warnings, fmt.Sprintf("Chart.lock says %s %s, but Chart.yaml wants %s",
				wanted.Name, version, wanted.Version))
		}
	}
	return warnings
}

func vendored(c *chartv2.Chart, name string) *chartv2.Chart {
	for _, held := range c.Dependencies() {
		if held.Name() == name {
			return held
		}
	}
	return nil
}
