// SPDX-License-Identifier: Apache-2.0

package upgrade_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

func TestDeletionAnswer(t *testing.T) {
	now := time.Unix(100000, 0)
	deletion := func(state addonsv1.GateState, deadline time.Duration) *addonsv1.ClusterDeletion {
		d := &addonsv1.ClusterDeletion{State: state, Message: "csi", Since: metav1.NewTime(now.Add(-time.Second))}
		if deadline != 0 {
			d.Deadline = metav1.NewTime(now.Add(deadline))
		}
		return d
	}
	silent := func(d time.Duration) *upgrade.LostInstance {
		return &upgrade.LostInstance{Instance: "team/chandler", Since: now.Add(-d)}
	}
	for name, tc := range map[string]struct {
		says     bool
		deletion *addonsv1.ClusterDeletion
		lost     *upgrade.LostInstance
		waits    bool
	}{
		"nothing is to be removed": {},
		"not seen yet":             {says: true, waits: true},
		"waiting":                  {says: true, deletion: deletion(addonsv1.GateWaiting, time.Minute), waits: true},
		"waiting for ever":         {says: true, deletion: deletion(addonsv1.GateWaiting, 0), lost: silent(100 * time.Hour), waits: true},
		"the deadline has come":    {says: true, deletion: deletion(addonsv1.GateWaiting, -time.Second)},
		"removed":                  {says: true, deletion: deletion(addonsv1.GateOpen, 0)},
		"expired":                  {says: true, deletion: deletion(addonsv1.GateExpired, 0)},
		"silent":                   {says: true, lost: silent(time.Minute), waits: true},
		"silent for long":          {says: true, lost: silent(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			ca := &addonsv1.ClusterAddon{}
			ca.Status.Deletion = tc.deletion
			if tc.says {
				ca.Status.GatesDeletion = ptr.To(true)
			}
			got := upgrade.DeletionAnswerOf(ca, tc.lost, now)
			if (got.RetryAfter > 0) != tc.waits || (got.Message != "") != tc.waits {
				t.Errorf("%+v", got)
			}
		})
	}
}
