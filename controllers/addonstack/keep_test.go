// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/must"
)

// A revision of a stack with a rollout says what brought it: its rollout may have to wait for another one. The stack is in its
// second generation.
func TestCauseOfRevisions(t *testing.T) {
	for name, tc := range map[string]struct {
		newest  int64  // generation of a revision with another spec, the newest one; 0 if there is none
		is      string // cause of the revision that keeps the spec, if there is one already
		kept    int64  // its generation, 0 if there is none
		without bool   // a rollout
		want    string
	}{
		"the first revision":                   {want: rollout.CauseEdited},
		"an edit":                              {newest: 1, want: rollout.CauseEdited},
		"a version":                            {newest: 2, want: rollout.CauseFollowed},
		"an edit without a rollout":            {newest: 1, without: true},
		"a version without a rollout":          {newest: 2, without: true},
		"a limit is edited":                    {kept: 1, is: rollout.CauseFollowed, want: rollout.CauseFollowed},
		"the rollout is new, not the revision": {kept: 1},
		"an edit is reverted":                  {newest: 1, kept: 1, is: rollout.CauseFollowed, want: rollout.CauseEdited},
		"it is back without an edit":           {newest: 2, kept: 1, is: rollout.CauseFollowed, want: rollout.CauseFollowed},
		"an edit is back without another one":  {newest: 2, kept: 1, is: rollout.CauseEdited, want: rollout.CauseEdited},
		"the rollout is taken out":             {kept: 1, is: rollout.CauseEdited, without: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, revision := keeping(t)
			if !tc.without {
				read(t, r.Client, s)
				s.Spec.Rollout = &addonsv1.Rollout{}
				must.Succeed(t, r.Client.Update(t.Context(), s))
			}
			read(t, r.Client, s)
			read(t, r.Client, revision)
			if tc.newest > 0 {
				newest := stack.Snapshot(s, []byte("{}"), 7)
				stack.SetGeneration(newest, tc.newest)
				must.Succeed(t, r.Client.Create(t.Context(), newest))
			}
			if stack.SetGeneration(revision, tc.kept); tc.is != "" {
				metav1.SetMetaDataAnnotation(&revision.ObjectMeta, addonsv1.RolloutCauseAnnotation, tc.is)
			}
			if must.Succeed(t, r.Client.Update(t.Context(), revision)); tc.kept == 0 {
				must.Succeed(t, r.Client.Delete(t.Context(), revision))
			}
			revisions, err := revisionHistory{r}.keepRevision(t.Context(), s, nil, nil)
			must.Succeed(t, err)
			is := &revisions[0]
			read(t, r.Client, is)
			if is := is.Annotations[addonsv1.RolloutCauseAnnotation]; is != tc.want {
				t.Errorf("got %q, want %q", is, tc.want)
			}
		})
	}
}
