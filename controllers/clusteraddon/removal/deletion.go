// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// Going returns the releases that go before the Cluster, with all that depends on them, and how long its deletion waits for that.
func Going(o *gather.Observed) (going sets.Set[deliver.Release], hold upgrade.Hold) {
	going = sets.New[deliver.Release]()
	for i := range o.Wanted {
		a := &o.Wanted[i]
		if !a.IsRemovedOnDeletion() {
			continue
		}
		going.Insert(a.Release())
		of := upgrade.HoldOf(a.Spec.Lifecycle)
		hold.Time, hold.Forever = max(hold.Time, of.Time), hold.Forever || of.Forever
	}
	for added := true; added; {
		added = false
		for release, record := range o.Installed {
			if !going.Has(release) && !o.Paused.Has(record.Stack) && slices.ContainsFunc(going.UnsortedList(), func(r deliver.Release) bool {
				return releases.DependsOn(record.Stack, record.DependsOn, releases.Qualified(o.Installed[r]))
			}) {
				going.Insert(release)
				added = true
			}
		}
	}
	return going, hold
}

// Alone returns the add-ons of a cluster for which no stack wants anything: no add-on takes over objects of those that go.
func (q Unwanted) Alone() Unwanted {
	q.Observed = q.WithoutStacks()
	return q
}

// BeforeDeletion returns the records of the releases that go, in the order of removal, and the statuses of all others.
func (q Unwanted) BeforeDeletion(going sets.Set[deliver.Release]) (leaving []deliver.Summary, kept []addonsv1.AddonStatus) {
	others := sets.KeySet(q.Installed).Difference(going)
	leaving, kept = q.partition(releases.InOrder(q.Installed, others), func(record deliver.Summary) decide.Fate {
		return decide.Unwanted{Ran: q.Proofs.Prove(record), LacksAccount: q.lacksAccount(record)}.Fate()
	})
	for _, status := range q.ClusterAddon.Status.Addons {
		if !going.Has(deliver.Release{Namespace: status.Namespace, Name: status.Name}) {
			kept = append(kept, status)
		}
	}
	return leaving, kept
}
