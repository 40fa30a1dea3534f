// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/standing"
)

// A stack that selects no cluster isn't written to with each cluster more.
func TestNumberOfClustersEndsSomewhere(t *testing.T) {
	for clusters, want := range map[int]string{0: "none", 1: "1 cluster", 10: "10 clusters", 11: "more than 10", 1000: "more than 10"} {
		if got := describeNumber(clusters); !strings.HasSuffix(strings.TrimSuffix(got, " clusters"), strings.TrimSuffix(want, " clusters")) {
			t.Errorf("of %d it says %q", clusters, got)
		}
	}
}

// A condition's message has at most 32768 bytes, however many clusters fail for however many causes.
func TestClustersReadyStaysShort(t *testing.T) {
	failures := standing.Causes{}
	for i := range 5000 {
		failures.Add(fmt.Sprintf("cluster-%04d", i), standing.OfAddon(&addonsv1.AddonStatus{
			Name: "web", Phase: addonsv1.AddonFailed, Reason: "HookFailed", Message: fmt.Sprint(i, strings.Repeat("x", 1024)),
		}))
	}
	c := clustersReady(&addonsv1.ClusterCounts{Total: 5000, Failed: 5000}, failures.Describe())
	if len(c.Message) > 8192 || !strings.Contains(c.Message, "and 4997 more") || !strings.Contains(c.Message, "cluster-0000") {
		t.Errorf("message of %d bytes: %.200s", len(c.Message), c.Message)
	}
}
