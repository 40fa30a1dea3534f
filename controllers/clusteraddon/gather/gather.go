// SPDX-License-Identifier: Apache-2.0

// Package gather reads the desired add-ons and the installed releases of a cluster into a value. It writes nothing.
package gather

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// Observed is what is known of a cluster before a step.
type Observed struct {
	// ClusterAddon has the assignment, and the status from before.
	ClusterAddon *addonsv1.ClusterAddon
	Stacks
	// Gates says that add-ons have a say in upgrades of Kubernetes. Upgrade is nil without one.
	Gates    bool
	Versions upgrade.Cluster
	Upgrade  *upgrade.Upgrade
	// Absent are add-ons that are there at other times, or that are another stack's by now, as "stack/name".
	Absent map[string]bool
	// Installed are the newest records of the releases of this ClusterAddon.
	Installed map[deliver.Release]deliver.Summary
	// Again says that a person asked to try at once what failed.
	Again bool
	Now   time.Time
}

// WithoutStacks returns what is known of a cluster that is to run no stack: nothing takes over what is removed with it.
func (o *Observed) WithoutStacks() *Observed {
	return &Observed{ClusterAddon: o.ClusterAddon, Installed: o.Installed, Absent: o.Absent, Now: o.Now}
}

// Wants reports whether a wanted add-on has the release.
func (o *Observed) Wants(release deliver.Release) bool {
	return slices.ContainsFunc(o.Wanted, func(a wanted.Addon) bool { return a.Release() == release })
}

// Records know the installed releases of each cluster.
type Records interface {
	// Of returns the newest record of each release; false while they aren't known.
	Of(cluster multicluster.ClusterName) (map[deliver.Release]deliver.Summary, bool)
}

// Reader reads what is known of one cluster.
type Reader struct {
	Cache, Direct client.Reader
	Inputs        inputs.Reader
	// Users learn of each object before it is read, so that no change is missed.
	Users   *inputs.References
	Records Records
	// Workload is the cluster's name in the fleet, and Running the version of Kubernetes that it runs.
	Workload multicluster.ClusterName
	Running  string
	// OutdatedSince says since when assignments don't follow, by stack.
	OutdatedSince map[string]time.Time
	Now           time.Time
}

// Read returns what is known of a cluster; false if nobody knows yet what is installed.
func (r Reader) Read(ctx context.Context, ca *addonsv1.ClusterAddon) (Observed, bool, error) {
	r.Users.Add(client.ObjectKeyFromObject(ca), inputs.AssignedRevisions(ca)...)
	assigned, err := r.Stacks(ctx, ca.Spec.Stacks)
	if err != nil {
		return Observed{}, false, err
	}
	o, known, err := r.Observe(ctx, ca, assigned)
	if known && err == nil {
		err = r.awaitBack(ctx, &o)
	}
	return o, known, err
}

// Observe returns what is known of a cluster that is to run the given stacks, which needn't be those of the assignment.
func (r Reader) Observe(ctx context.Context, ca *addonsv1.ClusterAddon, assigned []Stack) (o Observed, known bool, err error) {
	cluster, user := r.Inputs.Values.Cluster, client.ObjectKeyFromObject(ca)
	o = Observed{ClusterAddon: ca, Stacks: Resolve(assigned, cluster, r.OutdatedSince, r.Now), Again: IsAskedAgain(ca), Now: r.Now}
	o.Gates = slices.ContainsFunc(o.Wanted, func(a wanted.Addon) bool { return a.HasSay() })
	if _, awaited := FirstAwaited(o.Unresolved); awaited && ptr.Deref(ca.Status.GatesUpgrades, false) {
		o.Gates = true // add-ons of a stack that can't be read may have a say, as before
	}
	if o.Gates && cluster.Cluster != nil {
		o.Versions = upgrade.ClusterOf(cluster.Cluster, r.Running)
		o.Upgrade = upgrade.Observe(o.Versions, ca.Status.Upgrade)
	}
	o.Wanted, o.Absent = present(o.Wanted, o.Upgrade, ca.Spec.Stacks)
	if o.Upgrade.AtControlPlane() {
		written := &addonsv1.AddonStackList{}
		if err := r.Cache.List(ctx, written, client.InNamespace(ca.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return o, false, fmt.Errorf("listing AddonStacks of namespace %s: %w", ca.Namespace, err)
		}
		o.awaitAssignments(written.Items, assigned, cluster, r.OutdatedSince, r.Now)
	}
	for i := range o.Wanted {
		o.Wanted[i].Fit(r.Running, o.Upgrade)
	}
	r.Inputs.NameSources(ctx, o.Wanted)
	r.Users.Set(user, r.Inputs.UsedObjects(o.Wanted).Insert(inputs.AssignedRevisions(ca)...))
	if o.Installed, known = r.Records.Of(r.Workload); !known {
		return o, false, nil
	}
	// Two Clusters may share an API server: releases of other ClusterAddons stay out of this.
	maps.DeleteFunc(o.Installed, func(_ deliver.Release, record deliver.Summary) bool { return !record.IsOwnedBy(user.String()) })
	left := r.leftStacks(o.Installed, ca.Spec.Stacks)
	for name := range left {
		r.Users.Add(user, inputs.Object{Kind: inputs.KindStack, Key: r.keyOf(name)})
	}
	paused, err := r.paused(ctx, left, ca.Status.Addons) // nothing is removed for a paused stack, what it left included
	o.Paused = o.Paused.Union(paused)
	return o, true, err
}

func (r Reader) keyOf(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.Inputs.ClusterAddon.Namespace, Name: name}
}

// present returns the wanted add-ons that are there now, and the others, as "stack/name".
func present(all []wanted.Addon, u *upgrade.Upgrade, assigned []addonsv1.StackRevision) (now []wanted.Addon, absent map[string]bool) {
	absent = map[string]bool{}
	now = slices.DeleteFunc(all, func(a wanted.Addon) bool {
		moved := slices.Contains(stack.Assigned(assigned, a.Stack).MovedAddons, a.Release().String())
		if u.HasPresent(a.Present()) && !moved {
			return false
		}
		absent[a.Qualified()] = true
		return true
	})
	return now, absent
}

// leftStacks returns the stacks that have add-ons on the cluster and aren't assigned any more, as records that are proven say.
func (r Reader) leftStacks(installed map[deliver.Release]deliver.Summary, assigned []addonsv1.StackRevision) sets.Set[string] {
	left := sets.New[string]()
	for _, record := range installed {
		if !stack.IsAssigned(assigned, record.Stack) && r.Inputs.Proofs.Prove(record) {
			left.Insert(record.Stack)
		}
	}
	return left
}

// IsAskedAgain reports whether a person asks to try at once what failed.
func IsAskedAgain(ca *addonsv1.ClusterAddon) bool {
	asked := AskedFor(ca)
	return asked != "" && asked != ca.Status.LastReconcileNow
}

// AskedFor returns the value of status.lastReconcileNow once everything was tried.
func AskedFor(ca *addonsv1.ClusterAddon) string {
	value := ca.Annotations[addonsv1.ReconcileNowAnnotation]
	return value[:min(len(value), 256)]
}
