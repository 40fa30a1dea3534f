// SPDX-License-Identifier: Apache-2.0

package rendering_test

import (
	"testing"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/rendering"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// An aggregated API server that is down takes no answer away, and freezes no other.
func TestPreviousAnswers(t *testing.T) {
	facts, came := job.Facts{KubeVersion: "v1.36.3", APIVersions: []string{"v1"}}, job.Facts{KubeVersion: "v1.36.3", APIVersions: []string{"v1", "example.com/v1"}}
	some, all := job.FactsUsed{Has: map[string]bool{"metrics.k8s.io/v1beta1": true, "example.com/v1": false}}, job.FactsUsed{APIVersions: "sha256:of-all-of-them"}
	down := []string{"metrics.k8s.io/v1beta1"}
	for name, tc := range map[string]struct {
		asked   job.FactsUsed
		facts   job.Facts
		missing []string
		want    bool
	}{
		"an API is gone":                      {some, facts, nil, false},
		"it can't be discovered now":          {some, facts, down, true},
		"an API came while another one can't": {some, came, down, false},
		"all were asked for, and one can't":   {all, facts, down, true},
		"all were asked for, and are others":  {all, facts, nil, false},
	} {
		if got := rendering.StillHolds(tc.asked, tc.facts, tc.missing); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
