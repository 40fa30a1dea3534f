// SPDX-License-Identifier: Apache-2.0

package compatibility_test

import (
	"fmt"
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/compatibility"
)

func rangeOf(field, versions string) addonsv1.KubernetesRange {
	return addonsv1.KubernetesRange{Stack: "platform", Addon: "cni", Field: field, Versions: versions}
}

func TestAllows(t *testing.T) {
	for _, tc := range []struct {
		field, versions, version string
		want                     bool
	}{
		{compatibility.FieldLifecycle, ">=1.33 <1.37", "v1.33.0", true},
		{compatibility.FieldLifecycle, ">=1.33 <1.37", "v1.36.12", true},
		{compatibility.FieldLifecycle, ">=1.33 <1.37", "v1.37.0", false},
		{compatibility.FieldLifecycle, ">=1.33 <1.37", "v1.32.9", false},
		{compatibility.FieldLifecycle, "1.34.x", "v1.34.2-eks-1", true},
		{compatibility.FieldLifecycle, "1.34.x", "v1.34.2+rke2r1", true},
		{compatibility.FieldLifecycle, "<1.37", "v1.37.0-rc.1", false},
		{compatibility.FieldChartVersions, "1.34.x || 1.36.x", "v1.36.0", true},
		{compatibility.FieldChartVersions, "1.34.x || 1.36.x", "v1.35.0", false},
		{compatibility.FieldKubeVersion, ">=1.21.0-0", "v1.34.2-eks-1", true},
		{compatibility.FieldKubeVersion, ">=1.21", "v1.34.2-eks-1", false}, // as Helm does
		{compatibility.FieldKubeVersion, ">=1.21", "v1.34.2+k3s1", true},
		{compatibility.FieldLifecycle, "what is this", "v1.34.2", true},
		{compatibility.FieldLifecycle, ">=1.33", "no version", true},
	} {
		if got := compatibility.Allows(rangeOf(tc.field, tc.versions), tc.version); got != tc.want {
			t.Errorf("%s %s allows %s: %v", tc.field, tc.versions, tc.version, got)
		}
	}
}

func TestPick(t *testing.T) {
	rows := []addonsv1.ChartVersion{
		{Kubernetes: "not a range", Version: "0.0.1"},
		{Kubernetes: "1.34.x", Version: "2.34.0"},
		{Kubernetes: ">=1.34 <1.36", Version: "2.35.0"},
	}
	for running, want := range map[string]string{"v1.34.7": "2.34.0", "v1.35.0-eks-2": "2.35.0", "v1.36.0": "", "v1.33.0": ""} {
		row, found := compatibility.Pick(rows, running)
		if row.Version != want || found != (want != "") {
			t.Errorf("%s: %v, %v", running, row, found)
		}
	}
}

func TestRangesOfAnAddon(t *testing.T) {
	addon := &addonsv1.Addon{Name: "cni"}
	if got := compatibility.Ranges("platform", addon); got != nil {
		t.Errorf("without any: %v", got)
	}
	asked := map[string]bool{"<1.38": true}
	if got := fmt.Sprint(compatibility.Installed("platform", addon, asked)); got != "[{platform cni kubeVersion <1.38}]" {
		t.Errorf("of a chart: %v", got)
	}
	addon.Lifecycle = &addonsv1.AddonLifecycle{KubernetesVersions: "<1.40"}
	addon.Chart.Versions = []addonsv1.ChartVersion{{Kubernetes: "1.34.x"}, {Kubernetes: "1.35.x"}}
	if got := fmt.Sprint(compatibility.Ranges("platform", addon)); got != "[{platform cni lifecycle.kubernetesVersions <1.40} {platform cni chart.versions 1.34.x || 1.35.x}]" {
		t.Errorf("of a spec: %v", got)
	}
	if got := compatibility.Installed("platform", addon, asked); got != nil {
		t.Errorf("of a chart that is another one then: %v", got)
	}
}

func TestUpgrade(t *testing.T) {
	ranges := []addonsv1.KubernetesRange{
		rangeOf(compatibility.FieldLifecycle, ">=1.30 <1.40"),
		rangeOf(compatibility.FieldChartVersions, "1.34.x || 1.35.3 || 1.36.x || >=1.38.5"),
	}
	for _, tc := range []struct{ from, to, stops, by string }{
		{"v1.34.0", "v1.34.9", "", ""},
		{"v1.34.0", "v1.36.0", "1.35", "1.34.x || 1.35.3 || 1.36.x || >=1.38.5"}, // which patch of 1.35 isn't known
		{"v1.36.0", "v1.37.0", "v1.37.0", "1.34.x || 1.35.3 || 1.36.x || >=1.38.5"},
		{"v1.36.0", "v1.39.0", "1.37", "1.34.x || 1.35.3 || 1.36.x || >=1.38.5"},
		{"v1.38.6", "v1.39.0", "", ""},
		{"v1.38.6", "v1.40.0", "v1.40.0", ">=1.30 <1.40"},
		{"what", "v1.40.0", "v1.40.0", ">=1.30 <1.40"},
		{"v1.38.6", "what", "", ""},
	} {
		version, by := compatibility.Upgrade(ranges, tc.from, tc.to)
		if (by == nil) != (tc.by == "") || by != nil && (by.Versions != tc.by || version != tc.stops) {
			t.Errorf("from %s to %s: %s by %v", tc.from, tc.to, version, by)
		}
	}
}

func TestRemoved(t *testing.T) {
	for _, tc := range []struct{ kinds, version, kind, replacement string }{
		{"", "v1.36.0", "", ""},
		{"apps/v1/Deployment,v1/Service", "v1.99.0", "", ""},
		{"apps/v1/Deployment,policy/v1beta1/PodDisruptionBudget", "v1.25.0", "policy/v1beta1/PodDisruptionBudget", "policy/v1/PodDisruptionBudget"},
		{"policy/v1beta1/PodDisruptionBudget", "v1.24.17", "", ""},
		{"policy/v1beta1/PodDisruptionBudget", "v1.25.0-eks-1", "policy/v1beta1/PodDisruptionBudget", "policy/v1/PodDisruptionBudget"},
		{"networking.k8s.io/v1beta1/IPAddress", "v1.36.3", "", ""},
		{"networking.k8s.io/v1beta1/IPAddress", "v1.37.0", "networking.k8s.io/v1beta1/IPAddress", ""},
		{"policy/v1beta1/PodSecurityPolicy,example.org/v1beta1/PodDisruptionBudget", "v1.30.0", "", ""}, // none of today's Kubernetes
		{"Nonsense,a/b/c/d", "v1.30.0", "", ""},
		{"policy/v1beta1/PodDisruptionBudget", "what", "", ""},
	} {
		if kind, replacement := compatibility.Removed(tc.kinds, tc.version); kind != tc.kind || replacement != tc.replacement {
			t.Errorf("%s in %s: %q, %q", tc.kinds, tc.version, kind, replacement)
		}
	}
}

// hostileVersions are texts that an API server, a kubelet, or whoever may edit a Cluster gives as a version.
var hostileVersions = []string{
	"v1.1000.0", "v1.1000000.0", "v1.99999999999.0", "v1.18446744073709551000.0", "v1.18446744073709551615.0",
	"v99999999999.1.0", "v18446744073709551615.18446744073709551615.18446744073709551615", "1.99999999999", "v1.999.0",
	"v1.34.0-" + strings.Repeat("0", 100_000), "v1.34.0+" + strings.Repeat("a.", 50_000) + "a", strings.Repeat("9", 100_000), "",
}

// most is the number of allocations of an answer with one range, at most: a few for each of 100 minor versions.
const most = 2000

func TestHostileVersionsTakeFewSteps(t *testing.T) {
	ranges := []addonsv1.KubernetesRange{rangeOf(compatibility.FieldKubeVersion, ">=1.21.0-0")}
	for _, version := range hostileVersions {
		for name, ask := range map[string]func(){
			"Upgrade to it":  func() { compatibility.Upgrade(ranges, "v1.34.0", version) },
			"Upgrade from 0": func() { compatibility.Upgrade(ranges, "v0.0.0", version) },
			"Upgrade beyond": func() { compatibility.Upgrade(ranges, version, "v1.999.0") },
		} {
			if steps := testing.AllocsPerRun(1, ask); steps > most {
				t.Errorf("%s with %.40s: %v allocations", name, version, steps)
			}
		}
	}
}

// TestHostileRangesOfARecord has a release record name ranges that no Chart.yaml asked about.
func TestHostileRangesOfARecord(t *testing.T) {
	asked := map[string]bool{"": true, "!": true, strings.Repeat("<1.37 || ", 200) + "<1.37": true, "<1.38": true, "what is this": true}
	if got := compatibility.Installed("platform", &addonsv1.Addon{Name: "cni"}, asked); len(got) != 1 || got[0].Versions != "<1.38" {
		t.Errorf("got %v", got)
	}
	for i := range 10_000 {
		asked[fmt.Sprint("<1.", i)] = true
	}
	if got := compatibility.Installed("platform", &addonsv1.Addon{Name: "cni"}, asked); len(got) > 1 {
		t.Errorf("%d ranges", len(got))
	}
}

// FuzzVersions asks about any two versions and a range. Each answer fits the status.
func FuzzVersions(f *testing.F) {
	f.Fuzz(func(t *testing.T, one, other, text string) {
		ranges := []addonsv1.KubernetesRange{rangeOf(compatibility.FieldKubeVersion, text), rangeOf(compatibility.FieldLifecycle, text)}
		steps := testing.AllocsPerRun(1, func() { compatibility.Upgrade(ranges, one, other) })
		if steps > 10*most {
			t.Errorf("%q from %q to %q: %v allocations", text, one, other, steps)
		}
		if stops, by := compatibility.Upgrade(ranges, one, other); by != nil && stops != other && len(stops) > 16 {
			t.Errorf("%q from %q to %q stops at %q", text, one, other, stops)
		}
	})
}
