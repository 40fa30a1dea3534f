// SPDX-License-Identifier: Apache-2.0

// Package compatibility decides for which versions of Kubernetes add-ons are: by ranges that
// users write, by rows of chart.versions, and by kubeVersion of a Chart.yaml.
package compatibility

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/kubeversion"
)

// Values of [addonsv1.KubernetesRange].Field.
const (
	FieldLifecycle     = "lifecycle.kubernetesVersions"
	FieldChartVersions = "chart.versions"
	FieldKubeVersion   = "kubeVersion"
)

// Ranges returns the ranges that an add-on's spec has. The ranges of all rows of chart.versions are
// a single range.
func Ranges(stack string, addon *addonsv1.Addon) []addonsv1.KubernetesRange {
	var ranges []addonsv1.KubernetesRange
	if l := addon.Lifecycle; l != nil && l.KubernetesVersions != "" {
		ranges = append(ranges, addonsv1.KubernetesRange{Stack: stack, Addon: addon.Name, Field: FieldLifecycle, Versions: l.KubernetesVersions})
	}
	if rows := addon.Chart.Versions; len(rows) > 0 {
		all := make([]string, 0, len(rows))
		for _, row := range rows {
			all = append(all, row.Kubernetes)
		}
		ranges = append(ranges, addonsv1.KubernetesRange{Stack: stack, Addon: addon.Name, Field: FieldChartVersions, Versions: strings.Join(all, " || ")})
	}
	return ranges
}

// Installed returns the range of the Chart.yaml of which an add-on is installed: the one that its rendering asked about. With
// chart.versions there is none: another version of Kubernetes has another chart. A release record tells what was asked, and
// may say anything. So the first that can be read counts; the library reads none of more than 512 bytes.
func Installed(stack string, addon *addonsv1.Addon, asked map[string]bool) []addonsv1.KubernetesRange {
	if len(addon.Chart.Versions) > 0 {
		return nil
	}
	for _, constraint := range slices.Sorted(maps.Keys(asked)) {
		if constraint != "" && Check(constraint) == nil {
			return []addonsv1.KubernetesRange{{Stack: stack, Addon: addon.Name, Field: FieldKubeVersion, Versions: constraint}}
		}
	}
	return nil
}

// Describe names the add-on and its range, as in "add-on cni of AddonStack platform: chart.versions 1.34.x".
func Describe(r addonsv1.KubernetesRange) string {
	return fmt.Sprintf("add-on %s of AddonStack %s: %s %s", r.Addon, r.Stack, r.Field, r.Versions)
}

// Check returns why a text is no range of Kubernetes versions, nil if it is one.
func Check(text string) error {
	if _, err := semver.NewConstraint(text); err != nil {
		return fmt.Errorf(`%q is no range of versions, as in 1.34.x, ~1.34.2 or ">=1.34 <1.36"`, text) // the library's error names no way out
	}
	return nil
}

// Allows reports whether a range allows a version of Kubernetes, such as v1.36.1. Only the numbers
// of the version count, but for a chart's own kubeVersion, which Helm reads so. A range that can't
// be read excludes nothing: it is refused where it is written.
func Allows(r addonsv1.KubernetesRange, version string) bool {
	return Excluding([]addonsv1.KubernetesRange{r}, version) == nil
}

// Excluding returns the first range that doesn't allow a version, nil if all do.
func Excluding(ranges []addonsv1.KubernetesRange, version string) *addonsv1.KubernetesRange {
	v, err := kubeversion.Parse(version)
	if err != nil {
		return nil
	}
	for _, l := range read(ranges) {
		if !l.allows(v) {
			return l.of
		}
	}
	return nil
}

// limit is a range that was read. To read one takes longer than to ask it about a version.
type limit struct {
	of          *addonsv1.KubernetesRange
	constraints *semver.Constraints
}

func read(ranges []addonsv1.KubernetesRange) []limit {
	limits := make([]limit, 0, len(ranges))
	for i := range ranges {
		if constraints, err := semver.NewConstraint(ranges[i].Versions); err == nil {
			limits = append(limits, limit{&ranges[i], constraints})
		}
	}
	return limits
}

func (l limit) allows(v *semver.Version) bool {
	if l.of.Field != FieldKubeVersion {
		v = numbersOf(v)
	}
	return l.constraints.Check(v)
}

// numbersOf returns a version without what vendors add to it: v1.34.2-eks-1 and
// v1.34.2+rke2r1 are 1.34.2.
func numbersOf(v *semver.Version) *semver.Version {
	return semver.New(v.Major(), v.Minor(), v.Patch(), "", "")
}

// Pick returns the first row that a version of Kubernetes fits; false if there is none.
func Pick(rows []addonsv1.ChartVersion, version string) (row addonsv1.ChartVersion, found bool) {
	i := slices.IndexFunc(rows, func(row addonsv1.ChartVersion) bool { return fits(row, version) })
	if i < 0 {
		return addonsv1.ChartVersion{}, false
	}
	return rows[i], true
}

func fits(row addonsv1.ChartVersion, version string) bool {
	return Check(row.Kubernetes) == nil && Allows(addonsv1.KubernetesRange{Field: FieldChartVersions, Versions: row.Kubernetes}, version)
}

// Bridge returns the first row that fits both the first and the second of the versions that a
// cluster runs one after the other; nil if none does. It also returns the first two versions
// next to each other that no row fits both of, "" if there are none.
func Bridge(rows []addonsv1.ChartVersion, versions []string) (row *addonsv1.ChartVersion, from, to string) {
	for i := 1; i < len(versions); i++ {
		at := slices.IndexFunc(rows, func(row addonsv1.ChartVersion) bool {
			return fits(row, versions[i-1]) && fits(row, versions[i])
		})
		if at < 0 {
			return row, versions[i-1], versions[i]
		}
		if i == 1 {
			row = &rows[at]
		}
	}
	return row, "", ""
}
