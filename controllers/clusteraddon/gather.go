// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver"
)

// gathering finds out what is wanted on a cluster, and what is installed.
type gathering struct{ *clusterRun }

// read finds out what is wanted, and what is installed; false if that isn't known yet.
func (q gathering) read(ctx context.Context) (known bool, err error) {
	q.proofs = q.memory.proofs.restore(q.stored, q.ca.UID)
	user := client.ObjectKeyFromObject(q.ca)
	q.users.add(user, assignedRevisions(q.ca)...) // before they are read: so no change is missed
	assigned, err := q.readStacks(ctx)
	if err != nil {
		return false, err
	}
	q.stacks = resolveStacks(assigned, q.cluster, q.memory.outdatedSince, q.now)
	upgradeGate(q).observeUpgrade()
	for i := range q.wanted {
		q.wanted[i].fit(q.workload.conn.Version(), q.upgrade)
	}
	q.memory.outdatedSince = q.outdatedSince
	inputReader(q).nameSources(ctx)
	used := inputReader(q).usedObjects().Insert(assignedRevisions(q.ca)...)
	q.users.set(user, used)
	q.installed, known = q.records.Of(q.workload.name)
	// Two Clusters may share an API server: releases of other ClusterAddons stay out of this.
	maps.DeleteFunc(q.installed, func(_ deliver.Release, record deliver.Summary) bool { return !record.IsOwnedBy(ownerOf(q.ca)) })
	if known {
		q.leaving, q.kept = removal(q).unwanted()
		leaving := q.leavingReleases()
		maps.DeleteFunc(q.memory.addons, func(release deliver.Release, known *addonMemory) bool {
			if !slices.Contains(leaving, release) {
				known.leavingSince = time.Time{}
			}
			_, isInstalled := q.installed[release] // one that has just been may not be seen yet
			return !isInstalled && !q.isWanted(release)
		})
	}
	return known, nil
}
