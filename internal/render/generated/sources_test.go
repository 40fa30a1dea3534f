// SPDX-License-Identifier: Apache-2.0

package generated_test

import (
	"testing"

	"github.com/cluster-chandler/chandler/internal/render/generated"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/must"
)

func TestJoin(t *testing.T) {
	const one, elsewhere = "randAlphaNum/0123/0/p/aa,bb/x", "randAlphaNum/0123/0/q/cc/y"
	for name, tc := range map[string]struct {
		first, second, want job.Generated
		disagree            bool
	}{
		"of two objects":               {job.Generated{one: "a"}, job.Generated{elsewhere: "b"}, job.Generated{one: "a", elsewhere: "b"}, false},
		"equal":                        {job.Generated{one: "a"}, job.Generated{one: "a"}, job.Generated{one: "a"}, false},
		"equal, by other calls":        {job.Generated{one: "a"}, job.Generated{"env/7/0/p/bb/z": "a"}, job.Generated{one: "a", "env/7/0/p/bb/z": "a"}, false},
		"by the same call":             {job.Generated{one: "a"}, job.Generated{one: "b"}, job.Generated{one: "b"}, true},
		"in a common field":            {job.Generated{one: "a"}, job.Generated{"randAlphaNum/0123/2/r/bb,dd/z": "b"}, job.Generated{"randAlphaNum/0123/2/r/bb,dd/z": "b"}, true},
		"beside those that stay":       {job.Generated{one: "a", elsewhere: "c"}, job.Generated{one: "b"}, job.Generated{one: "b", elsewhere: "c"}, true},
		"of keys without fields":       {job.Generated{"randAlphaNum/0123": "a"}, job.Generated{"randAlphaNum/0123": "b"}, job.Generated{"randAlphaNum/0123": "b"}, true},
		"of a release without a value": {nil, job.Generated{one: "b"}, job.Generated{one: "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, tc.want, generated.Join(tc.first, tc.second))
			for _, both := range [][2]job.Generated{{tc.first, tc.second}, {tc.second, tc.first}} {
				must.Equal(t, tc.disagree, generated.Disagree(both[0], both[1]), "disagree")
			}
		})
	}
}
