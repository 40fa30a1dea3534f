// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/flowcontrol"
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
	// gates says that add-ons have a say in upgrades of Kubernetes. upgrade is nil without one.
	gates    bool
	versions upgrade.Cluster
	upgrade  *upgrade.Upgrade
	// absent are add-ons that are there at other times, as "stack/name".
	absent map[string]bool

	installed map[deliver.Release]deliver.Summary
	proofs    map[deliver.Release]string // of the records, see restoreProofs
	leaving   []deliver.Summary          // not wanted any more, in the order of removal
	kept      []addonsv1.AddonStatus     // not wanted any more, and left as they are
}

// read finds out what is wanted, and what is installed; false if that isn't known yet.
func (q *request) read(ctx context.Context) (known bool, err error) {
	q.restoreProofs()
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
	q.users.usedBy.Store(client.ObjectKeyFromObject(q.ca), q.usedObjects()) // before they are read: so no change is missed
	q.installed, known = q.records.Of(q.workload.name)
	// Two Clusters may share an API server: releases of other ClusterAddons stay out of this.
	maps.DeleteFunc(q.installed, func(_ deliver.Release, record deliver.Summary) bool { return !record.IsOwnedBy(ownerOf(q.ca)) })
	if known {
		maps.DeleteFunc(q.memory.health, func(release deliver.Release, _ *healthMemory) bool {
			_, isInstalled := q.installed[release] // one that has just been may not be seen yet
			return !isInstalled && !slices.ContainsFunc(q.wanted, func(a addon) bool { return a.release() == release })
		})
		q.leaving, q.kept = q.unwanted()
		maps.DeleteFunc(q.memory.leavingSince, func(release deliver.Release, _ time.Time) bool {
			return !slices.Contains(q.leavingReleases(), release)
		})
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

// previousStatus returns the add-on's last status, or the given one, Pending, if it had none.
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

// memory is what this process remembers of a ClusterAddon from one reconcile to the next.
// A ClusterAddon has one reconcile at a time. Losing the memory costs some looks more.
type memory struct {
	// unmetSince says since when conditions don't hold.
	unmetSince map[conditionsKey]time.Time
	// outdatedSince says since when assignments don't follow, by stack.
	outdatedSince map[string]time.Time
	// installs are those of add-ons that had no record, by release.
	installs *flowcontrol.Backoff
	// began says since when add-ons are worked on that aren't Ready.
	began map[deliver.Release]time.Time
	// agreed are optional sources of values without which somebody lets an add-on go on, as "namespace/name" and
	// "kind/name/key". Losing one asks once more.
	agreed sets.Set[string]
	// leavingSince says since when add-ons wait for others that may take over their objects. Losing it has them wait
	// once more.
	leavingSince map[deliver.Release]time.Time
	// drifts are what is known of changes by others, repairs how many may be repaired.
	drifts  map[deliver.Release]*driftMemory
	repairs *rate.Limiter
	// health is what was seen of installed add-ons' workloads.
	health map[deliver.Release]*healthMemory
	// gates are those of the cluster's upgrade, as they are counted.
	gates sets.Set[gateLabels]
	// identity is that of the cluster.
	identity identity
	// proofs are those of the records.
	proofs proofs
	// lastEvents is the status that events were last about, nil before the first.
	lastEvents *addonsv1.ClusterAddonStatus
}

func newMemory() *memory {
	return &memory{
		unmetSince: map[conditionsKey]time.Time{}, installs: newInstalls(), began: map[deliver.Release]time.Time{},
		leavingSince: map[deliver.Release]time.Time{}, agreed: sets.New[string](),
		health: map[deliver.Release]*healthMemory{},
		drifts: map[deliver.Release]*driftMemory{}, repairs: rate.NewLimiter(repairRate, repairBurst),
	}
}

// memoryOf returns the memory of a ClusterAddon, an empty one at first.
func (r *Reconciler) memoryOf(key client.ObjectKey) *memory {
	known, _ := r.memories.LoadOrStore(key, newMemory())
	return known.(*memory)
}

// forget drops all that is known of a ClusterAddon that is gone.
func (r *Reconciler) forget(key client.ObjectKey) {
	r.memoryOf(key).countGates(nil)
	r.memories.Delete(key)
	r.users.usedBy.Delete(key)
	r.lanes.forget(key)
	r.Deliverer.Forget(key.String())
	r.statuses.Forget(key)
}

// Pauses before an add-on is installed once more whose record doesn't stay. They double, and what
// is below firstInstallPause is none: the watch of records may be behind.
const (
	freeInstalls      = 3
	firstInstallPause = 10 * time.Second
	lastInstallPause  = 5 * time.Minute
)

func newInstalls() *flowcontrol.Backoff {
	return flowcontrol.NewBackOff(firstInstallPause>>(freeInstalls-1), lastInstallPause)
}

// installPause returns how long to wait before an add-on without a record is installed; 0 if it may be now.
func (m *memory) installPause(release deliver.Release, now time.Time) time.Duration {
	pause := m.installs.Get(release.String())
	if pause < firstInstallPause || !m.installs.IsInBackOffSinceUpdate(release.String(), now) {
		return 0
	}
	return pause
}
