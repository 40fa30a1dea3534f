// SPDX-License-Identifier: Apache-2.0

package upgrade_test

import (
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// TestHostileVersionsAreFewSteps has a kubelet, or whoever edits the Cluster, name a version that is far off.
func TestHostileVersionsAreFewSteps(t *testing.T) {
	for _, version := range []string{
		"v1.999.0", "v1.1000000.0", "v1.20000000.0", "v1.99999999999.0", "v1.18446744073709551000.0",
		"v18446744073709551615.18446744073709551615.0", "v1.36.0-" + strings.Repeat("a", 200),
	} {
		for name, seen := range map[string]upgrade.Cluster{
			"a kubelet's":           cluster("", []string{"v1.34.1"}, []string{version}, nil),
			"the topology's":        cluster(version, []string{"v1.34.1"}, []string{"v1.34.1"}, nil),
			"the control plane's":   cluster("", []string{"v1.34.1", version}, nil, nil),
			"all but the kubelets'": cluster(version, []string{version}, []string{"v1.34.1"}, nil),
		} {
			for _, before := range []*addonsv1.ClusterUpgrade{nil, {From: "v1.33.0", Step: version, Target: version}} {
				if u := upgrade.Observe(seen, before); u != nil && len(u.Steps) > 52 {
					t.Errorf("%s %.40s: %d steps", name, version, len(u.Steps))
				}
			}
		}
	}
}
