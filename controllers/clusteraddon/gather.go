// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// gathering finds out what is wanted on a cluster, and what is installed.
type gathering struct{ *clusterRun }

// read finds out what is wanted, and what is installed; false if that isn't known yet.
func (q gathering) read(ctx context.Context) (known bool, err error) {
	q.proofs = &q.memory.proofs
	q.proofs.Restore(q.stored, q.ca.UID)
	user := client.ObjectKeyFromObject(q.ca)
	q.users.Add(user, inputs.AssignedRevisions(q.ca)...) // before they are read: so no change is missed
	assigned, err := q.stackReader().read(ctx, q.ca.Spec.Stacks)
	if err != nil {
		return false, err
	}
	return q.observe(ctx, assigned, &q.users)
}

// observe finds out what is wanted by these stacks, and what is installed; false if that isn't known yet. The users get the objects
// that it depends on.
func (q gathering) observe(ctx context.Context, assigned []assignedStack, users *inputs.References) (known bool, err error) {
	user := client.ObjectKeyFromObject(q.ca)
	q.stacks = resolveStacks(assigned, q.cluster, q.memory.outdatedSince, q.now)
	if err := q.observeUpgrade(ctx, assigned); err != nil {
		return false, err
	}
	for i := range q.wanted {
		q.wanted[i].Fit(q.workload.Conn.Version(), q.upgrade)
	}
	q.memory.outdatedSince = q.outdatedSince
	q.reader().NameSources(ctx, q.wanted)
	used := q.reader().UsedObjects(q.wanted).Insert(inputs.AssignedRevisions(q.ca)...)
	users.Set(user, used)
	q.installed, known = q.records.Of(q.workload.Name)
	// Two Clusters may share an API server: releases of other ClusterAddons stay out of this.
	maps.DeleteFunc(q.installed, func(_ deliver.Release, record deliver.Summary) bool { return !record.IsOwnedBy(ownerOf(q.ca)) })
	if known {
		if err := q.notePauses(ctx, users); err != nil { // nothing is removed for a paused stack, what it left included
			return false, err
		}
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

// notePauses notes which of the stacks are paused whose add-ons are still to be removed.
func (q gathering) notePauses(ctx context.Context, users *inputs.References) error {
	left := leftStacks(q.installed, q.proofs, q.ca.Spec.Stacks)
	for name := range left { // before they are read: so no change is missed
		users.Add(client.ObjectKeyFromObject(q.ca), inputs.Object{Kind: inputs.KindStack, Key: q.keyOf(name)})
	}
	paused, err := q.stackReader().paused(ctx, left, q.ca.Status.Addons)
	q.paused = q.paused.Union(paused)
	return err
}

// observeUpgrade finds out how far an upgrade of the cluster's Kubernetes is, if add-ons have a
// say in it. Add-ons of a stack that can't be read may have one, as before.
func (q gathering) observeUpgrade(ctx context.Context, assigned []assignedStack) error {
	q.gates = slices.ContainsFunc(q.wanted, func(a wanted.Addon) bool { return a.HasSay() })
	if _, awaited := firstAwaited(q.unresolved); awaited && ptr.Deref(q.ca.Status.GatesUpgrades, false) {
		q.gates = true
	}
	if q.gates && q.cluster.Cluster != nil {
		q.versions = upgrade.ClusterOf(q.cluster.Cluster, q.workload.Conn.Version())
		q.upgrade = upgrade.Observe(q.versions, q.ca.Status.Upgrade)
	}
	q.absent = map[string]bool{}
	q.wanted = slices.DeleteFunc(q.wanted, func(a wanted.Addon) bool {
		moved := slices.Contains(stack.Assigned(q.ca.Spec.Stacks, a.Stack).MovedAddons, a.Release().String())
		if q.upgrade.HasPresent(a.Present()) && !moved {
			return false
		}
		q.absent[a.Qualified()] = true
		return true
	})
	if !q.upgrade.AtControlPlane() {
		return nil
	}
	written := &addonsv1.AddonStackList{}
	if err := q.Client.List(ctx, written, client.InNamespace(q.ca.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing AddonStacks of namespace %s: %w", q.ca.Namespace, err)
	}
	q.awaitAssignments(written.Items, assigned, q.cluster, q.memory.outdatedSince, q.now)
	return nil
}
