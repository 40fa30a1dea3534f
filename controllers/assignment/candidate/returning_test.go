// SPDX-License-Identifier: Apache-2.0

package candidate_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

func TestReturning(t *testing.T) {
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	revisions := []rollout.Revision{{Name: "4", Rejected: true}, {Name: "3"}, {Name: "2"}, {Name: "1"}}
	recorded := func(stack, revision string) addonsv1.AddonStatus {
		return addonsv1.AddonStatus{Stack: stack, RecordedRevision: revision}
	}
	for name, tc := range map[string]struct {
		isNew, unreported, restored bool
		later                       time.Duration
		addons                      []addonsv1.AddonStatus
		want                        string
		waits                       bool
	}{
		"it is to be made":                        {isNew: true, waits: true},
		"it hasn't reported":                      {unreported: true, waits: true},
		"it hasn't reported for long":             {unreported: true, later: candidate.FirstReport},
		"a backup brought a status":               {restored: true, later: candidate.FirstReport, addons: []addonsv1.AddonStatus{recorded("platform", "2")}},
		"its cluster has nothing":                 {},
		"its records name a revision":             {addons: []addonsv1.AddonStatus{recorded("platform", "2")}, want: "2"},
		"its records name several":                {addons: []addonsv1.AddonStatus{recorded("platform", "1"), recorded("platform", "3"), recorded("platform", "2")}, want: "3"},
		"one of them was rejected":                {addons: []addonsv1.AddonStatus{recorded("platform", "4"), recorded("platform", "2")}, want: "2"},
		"it was rejected":                         {addons: []addonsv1.AddonStatus{recorded("platform", "4")}},
		"it is gone, or never was":                {addons: []addonsv1.AddonStatus{recorded("platform", "9")}},
		"it is another stack's":                   {addons: []addonsv1.AddonStatus{recorded("other", "2")}},
		"a record of an older version names none": {addons: []addonsv1.AddonStatus{recorded("platform", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Name: "prod", UID: "new", CreationTimestamp: metav1.NewTime(made)}}
			if ca.Status.Addons = tc.addons; !tc.unreported && !tc.isNew {
				ca.Status.ObservedUID, ca.Status.ObservedGeneration = ca.UID, 1
			}
			if tc.restored {
				ca.Status.ObservedUID = "old"
			}
			if tc.isNew {
				ca.Name = ""
			}
			if got, waits := candidate.Returning(ca, "platform", revisions, made.Add(tc.later)); got != tc.want || waits != tc.waits {
				t.Errorf("got %q, %v", got, waits)
			}
		})
	}
}
