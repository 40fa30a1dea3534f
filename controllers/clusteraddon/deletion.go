// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// unreachableDeletion is how long the deletion of a Cluster waits for one that doesn't answer.
const unreachableDeletion = 10 * time.Minute

// removesBeforeDeletion reports whether a Cluster is being deleted and waits for add-ons to be
// removed. A Cluster that moves to another management cluster is deleted here, too, and lives on.
func removesBeforeDeletion(ca *addonsv1.ClusterAddon, cluster *member.Member) bool {
	if cluster == nil || cluster.Cluster == nil || !cluster.Deleting || !ca.DeletionTimestamp.IsZero() {
		return false
	}
	object := cluster.Cluster
	_, goesOn := object.Annotations[runtimev1.OkToDeleteAnnotation]
	return ptr.Deref(ca.Status.GatesDeletion, false) && cluster.Initialized && object.Spec.Topology.IsDefined() &&
		!moves(cluster) && !goesOn && !annotations.IsPaused(object, ca)
}

// moves reports whether the Cluster is deleted here as it continues in another management cluster.
func moves(cluster *member.Member) bool {
	if cluster == nil || cluster.Cluster == nil {
		return false
	}
	_, yes := cluster.Cluster.Annotations[clusterctlv1.DeleteForMoveAnnotation]
	return yes
}

// reportDeletable notes whether the deletion of the Cluster is to wait for add-ons.
func (q removal) reportDeletable() {
	q.ca.Status.Deletion, q.ca.Status.GatesDeletion = nil, nil
	if q.cluster.Cluster != nil && slices.ContainsFunc(q.wanted, func(a wanted.Addon) bool { return a.IsRemovedOnDeletion() }) {
		q.ca.Status.GatesDeletion = ptr.To(true)
	}
}

// removeBeforeDeletion removes the add-ons that are to go before the Cluster, dependents first.
func (q removal) removeBeforeDeletion(ctx context.Context) (ctrl.Result, error) {
	hold := q.leaveForDeletion()
	var all result
	q.removeLeaving(ctx, nil, &all)
	var left []string
	for i := range all.statuses {
		left = append(left, all.statuses[i].Name)
	}
	slices.Sort(left)
	report(q.ca, slices.Concat(q.kept, all.statuses), nil, nil)
	noteSince(&q.stored.Status, &q.ca.Status, q.now)
	q.proofs.Report(q.ca.Status.Addons)
	setDeletion(q.ca, left, hold, time.Time{}, q.now)
	if !all.unreachable {
		q.ca.Status.ObservedGeneration = q.ca.Generation
	}
	return ctrl.Result{RequeueAfter: retry.Sooner(all.retryAfter, until(q.ca.Status.Deletion.Deadline.Time, q.now))}, all.err
}

// leaveForDeletion has the add-ons leave that are to go, with all that depends on them, and keeps the
// statuses of others. It returns how long the deletion waits.
func (q removal) leaveForDeletion() (hold upgrade.Hold) {
	going := sets.New[deliver.Release]()
	for i := range q.wanted {
		a := &q.wanted[i]
		if !a.IsRemovedOnDeletion() {
			continue
		}
		going.Insert(a.Release())
		of := upgrade.HoldOf(a.Spec.Lifecycle)
		hold.Time, hold.Forever = max(hold.Time, of.Time), hold.Forever || of.Forever
	}
	for added := true; added; {
		added = false
		for release, record := range q.installed {
			if !going.Has(release) && !q.paused.Has(record.Stack) && slices.ContainsFunc(going.UnsortedList(), func(r deliver.Release) bool {
				return releases.DependsOn(record.Stack, record.DependsOn, releases.Qualified(q.installed[r]))
			}) {
				going.Insert(release)
				added = true
			}
		}
	}
	q.wanted, q.unresolved, q.upgrade = nil, nil, nil // nobody takes over what is removed with the Cluster
	others := sets.KeySet(q.installed).Difference(going)
	q.leaving, q.kept = q.parted(releases.InOrder(q.installed, others), func(record deliver.Summary) decide.Fate {
		return decide.Unwanted{Ran: q.proofs.Prove(record), LacksAccount: !q.mayRemove(record)}.Fate()
	})
	for _, status := range q.ca.Status.Addons {
		if !going.Has(deliver.Release{Namespace: status.Namespace, Name: status.Name}) {
			q.kept = append(q.kept, status)
		}
	}
	return hold
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
		d.State, d.Message = addonsv1.GateWaiting, "Add-ons are removed before the Cluster: "+message.List(left, ", ", named)
		switch {
		case hold.Forever:
		case now.Before(deadline):
			d.Deadline.Time = deadline
		default:
			d.State, d.Message = addonsv1.GateExpired, "The Cluster is deleted, and these add-ons weren't removed: "+message.List(left, ", ", named)
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

// deletionUnseen writes that the deletion waits for a cluster of which nothing can be seen since a time.
func deletionUnseen(ca *addonsv1.ClusterAddon, unseenSince, now time.Time) ctrl.Result {
	hold := upgrade.HoldOf(nil)
	since := now
	if d := ca.Status.Deletion; d != nil {
		since = d.Since.Time
		hold = hold.AtLeast(d.State, d.Since, d.Deadline)
		if d.State == addonsv1.GateOpen {
			return ctrl.Result{}
		}
	}
	if unseenSince.After(since) {
		since = unseenSince
	}
	setDeletion(ca, []string{fmt.Sprintf("the cluster doesn't answer since %s", since.UTC().Format(time.RFC3339))}, hold, since.Add(unreachableDeletion), now)
	return ctrl.Result{RequeueAfter: until(ca.Status.Deletion.Deadline.Time, now)}
}
