// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"testing"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/must"
)

func TestFactsHold(t *testing.T) {
	now := job.Facts{KubeVersion: "v1.36.3", APIVersions: []string{"v1", "apps/v1"}}
	cases := map[string]struct {
		used job.FactsUsed
		want bool
	}{
		"nothing asked":              {job.FactsUsed{}, true},
		"the same version":           {job.FactsUsed{KubeVersion: "v1.36.3"}, true},
		"another version":            {job.FactsUsed{KubeVersion: "v1.36.2"}, false},
		"still in range":             {job.FactsUsed{KubeRange: map[string]bool{">=1.30.0": true}}, true},
		"now in range":               {job.FactsUsed{KubeRange: map[string]bool{">=1.30.0": false}}, false},
		"still there":                {job.FactsUsed{Has: map[string]bool{"apps/v1": true}}, true},
		"still absent":               {job.FactsUsed{Has: map[string]bool{"apps/v2": false}}, true},
		"gone":                       {job.FactsUsed{Has: map[string]bool{"apps/v2": true}}, false},
		"new":                        {job.FactsUsed{Has: map[string]bool{"apps/v1": false}}, false},
		"the same list, other order": {job.FactsUsed{APIVersions: job.HashList([]string{"apps/v1", "v1"})}, true},
		"another list":               {job.FactsUsed{APIVersions: job.HashList([]string{"v1"})}, false},
		"the list beside its own":    {job.FactsUsed{APIVersions: job.HashList([]string{"v1"}), Own: []string{"apps/v1"}}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, c.want, c.used.Holds(now))
		})
	}
	if (job.FactsUsed{}).Holds(job.Facts{KubeVersion: "no version"}) {
		t.Error("holds for a version that is none")
	}
}
