// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// request is what a reconcile is about: all that is known before anything is done. Steps
// read it, and return what came of them.
type request struct {
	*Reconciler
	ca       *addonsv1.ClusterAddon // only announce and finish write to its status
	stored   *addonsv1.ClusterAddon // as it was last written
	cluster  *member.Member
	workload *workload
	memory   *memory
	now      time.Time
	// removes says that the Cluster is being deleted, and waits for add-ons to be removed.
	removes bool
	// again says that somebody asked to try at once what failed.
	again bool

	stacks
	// gates says that add-ons have a say in upgrades of Kubernetes; versions are those of the cluster
	// then, and upgrade is nil without one.
	gates    bool
	versions upgrade.Cluster
	upgrade  *upgrade.Upgrade
	// absent are add-ons that are there at other times, as "stack/name".
	absent map[string]bool

	installed map[deliver.Release]deliver.Summary
	leaving   []deliver.Summary      // not wanted any more, in the order of removal
	kept      []addonsv1.AddonStatus // not wanted any more, and left as they are
}

// read finds out what is wanted, and what is installed; false if that isn't known yet.
func (q *request) read(ctx context.Context) (known bool, err error) {
	assigned, err := q.readStacks(ctx)
	if err != nil {
		return false, err
	}
	q.stacks = resolveStacks(assigned, q.cluster, q.memory.outdatedSince, q.now)
	q.observeUpgrade()
	for i := range q.wanted {
		q.wanted[i].fit(q.workload.conn.Version(), q.upgrade)
	}
	q.memory.outdatedSince = q.outdatedSince
	q.users.replace(client.ObjectKeyFromObject(q.ca), q.usedObjects()) // before they are read: so no change is missed
	if q.installed, known = q.readRecords(); known {
		q.leaving, q.kept = q.unwanted()
	}
	return known, nil
}

// reference says where the add-on's chart, kustomization or manifests are.
func (q *request) reference(a *addon) reference.Reference {
	return reference.AddonOf(q.ca.Namespace, &a.Addon, a.bundle)
}

func (q *request) keyOf(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: q.ca.Namespace, Name: name}
}

// previousStatus returns the add-on's status as it was last time. If it had none it is
// the given one, Pending.
func (q *request) previousStatus(status addonsv1.AddonStatus) addonsv1.AddonStatus {
	if at := indexOf(q.ca.Status.Addons, status); at >= 0 {
		return q.ca.Status.Addons[at]
	}
	if status.Phase == "" {
		status.Phase = addonsv1.AddonPending
	}
	return status
}

// indexOf returns where the status of the same add-on of the same stack is, -1 if it isn't there.
func indexOf(all []addonsv1.AddonStatus, status addonsv1.AddonStatus) int {
	return slices.IndexFunc(all, func(s addonsv1.AddonStatus) bool {
		return s.Name == status.Name && s.Namespace == status.Namespace && s.Stack == status.Stack
	})
}
