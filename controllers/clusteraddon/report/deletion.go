// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// unreachableDeletion is how long the deletion of a Cluster waits for one that doesn't answer.
const unreachableDeletion = 10 * time.Minute

// setDeletable notes whether the deletion of the Cluster is to wait for add-ons.
func setDeletable(o *gather.Observed, cluster *member.Member) {
	status := &o.ClusterAddon.Status
	status.Deletion, status.GatesDeletion = nil, nil
	if cluster.Cluster != nil && slices.ContainsFunc(o.Wanted, func(a wanted.Addon) bool { return a.IsRemovedOnDeletion() }) {
		status.GatesDeletion = ptr.To(true)
	}
}

// setDeletion writes whether the deletion may go on, by the add-ons that are left. It waits no longer
// than until a time, if that isn't zero.
func setDeletion(ca *addonsv1.ClusterAddon, left []string, hold upgrade.Hold, atMost, now time.Time) {
	d := &addonsv1.ClusterDeletion{State: addonsv1.GateOpen, Since: upgrade.Since(now)}
	if ca.Status.Deletion != nil {
		d.Since = ca.Status.Deletion.Since
	}
	if len(left) > 0 {
		deadline := d.Since.Add(hold.Time)
		if !atMost.IsZero() && (hold.Forever || atMost.Before(deadline)) {
			deadline, hold.Forever = atMost, false
		}
		d.State, d.Message = addonsv1.GateWaiting, "Add-ons are removed before the Cluster: "+message.List(left, ", ", message.Few)
		switch {
		case hold.Forever:
		case now.Before(deadline):
			d.Deadline.Time = deadline
		default:
			d.State, d.Message = addonsv1.GateExpired, "The Cluster is deleted, and these add-ons weren't removed: "+message.List(left, ", ", message.Few)
		}
	}
	ca.Status.Deletion = d
	tellDeletion(ca)
}

// tellDeletion writes into the condition Deleting what the deletion waits for.
func tellDeletion(ca *addonsv1.ClusterAddon) {
	c, d := conditions.Get(ca, addonsv1.DeletingCondition), ca.Status.Deletion
	if c != nil && d != nil && d.Message != "" {
		c.Message = d.Message
		conditions.Set(ca, *c)
	}
}

// deletionUnseen writes that the deletion waits for a cluster of which nothing can be seen since a time, and returns when to look
// again.
func deletionUnseen(ca *addonsv1.ClusterAddon, unseenSince, now time.Time) time.Duration {
	hold := upgrade.HoldOf(nil)
	since := now
	if d := ca.Status.Deletion; d != nil {
		since = d.Since.Time
		hold = hold.AtLeast(d.State, d.Since, d.Deadline)
		if d.State == addonsv1.GateOpen {
			return 0
		}
	}
	if unseenSince.After(since) {
		since = unseenSince
	}
	setDeletion(ca, []string{fmt.Sprintf("the cluster doesn't answer since %s", since.UTC().Format(time.RFC3339))}, hold, since.Add(unreachableDeletion), now)
	return result.Until(ca.Status.Deletion.Deadline.Time, now)
}
