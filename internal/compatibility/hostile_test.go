// SPDX-License-Identifier: Apache-2.0

package compatibility_test

import (
	"fmt"
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/compatibility"
)

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
	asked := map[string]bool{"<1.38": true, "what is this": true, ">=1." + strings.Repeat("0", 600): true}
	if got := compatibility.Installed("platform", &addonsv1.Addon{Name: "cni"}, asked); len(got) != 1 || got[0].Versions != "<1.38" {
		t.Errorf("got %v", got)
	}
	for i := range 10_000 {
		asked[fmt.Sprint("<1.", i)] = true
	}
	if got := compatibility.Installed("platform", &addonsv1.Addon{Name: "cni"}, asked); len(got) > 16 {
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
