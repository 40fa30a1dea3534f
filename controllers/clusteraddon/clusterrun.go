// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/checks"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/rendering"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// clusterRun is one reconcile of a cluster: all that is known before anything is done. Steps
// read it, and return what came of them.
type clusterRun struct {
	*Reconciler
	ca       *addonsv1.ClusterAddon // only announce and finish write to its status
	stored   *addonsv1.ClusterAddon // as it was last written
	cluster  *member.Member
	workload workload.Cluster
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
	// absent are add-ons that are there at other times, or that are another stack's by now, as "stack/name".
	absent map[string]bool

	installed map[deliver.Release]deliver.Summary
	proofs    *releases.Proofs
	leaving   []deliver.Summary      // not wanted any more, in the order of removal
	kept      []addonsv1.AddonStatus // not wanted any more, and left as they are
}

// reader returns what reads the inputs of add-ons.
func (q *clusterRun) reader() inputs.Reader {
	return inputs.Reader{
		Sources: q.Sources, Renderer: q.Renderer, Values: q.Values, Provider: q.provider, ClusterAddon: client.ObjectKeyFromObject(q.ca),
		Cluster: q.cluster, Proofs: q.proofs, Agreed: func(r deliver.Release) sets.Set[string] { return q.memory.of(r).agreed }, Again: q.again,
	}
}

// renderer returns what renders add-ons.
func (q *clusterRun) renderer() rendering.Renderer {
	return rendering.Renderer{Sources: q.Sources, Renderer: q.Renderer, Kinds: q.kinds, Workload: q.workload, Proofs: q.proofs, Now: q.now}
}

// checks returns what evaluates conditions of an add-on.
func (q *clusterRun) checks(a *wanted.Addon) checks.Checks {
	return checks.Checks{Workload: q.workload, Addon: a, Memory: &q.memory.of(a.Release()).checks, Now: q.now}
}

// repairs returns what repairs changes of an add-on by others.
func (q *clusterRun) repairs(a *wanted.Addon) driftRepair {
	return driftRepair{
		deliverer: q.Deliverer, watched: q.watched, workload: q.workload, addon: a, memory: &q.memory.of(a.Release()).drift, limiter: q.memory.repairs,
		proofs: q.proofs, again: q.again, now: q.now, record: func(e event) { q.record(q.ca, e) },
	}
}

// health returns what evaluates the workloads of an add-on.
func (q *clusterRun) health(a *wanted.Addon) healthCheck {
	return healthCheck{
		watched: q.watched, workload: q.workload, addon: a, memory: &q.memory.of(a.Release()).health, was: q.previousStatus(a.Status()), now: q.now,
	}
}

// terms returns what brings changed terms into records.
func (q *clusterRun) terms() releases.Terms {
	return releases.Terms{Deliverer: q.Deliverer, Target: q.workload.Target(), UID: q.ca.UID, Proofs: q.proofs}
}

func (q *clusterRun) keyOf(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: q.ca.Namespace, Name: name}
}

// previousStatus returns the add-on's last status, or the given one, Pending, if it had none.
func (q *clusterRun) previousStatus(status addonsv1.AddonStatus) addonsv1.AddonStatus {
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

// leavingReleases returns those whose objects wanted add-ons may take over.
func (q *clusterRun) leavingReleases() []deliver.Release {
	releases := make([]deliver.Release, 0, len(q.leaving))
	for _, record := range q.leaving {
		releases = append(releases, record.Release)
	}
	return releases
}

// isWanted reports whether a wanted add-on has the release.
func (q *clusterRun) isWanted(release deliver.Release) bool {
	return slices.ContainsFunc(q.wanted, func(a wanted.Addon) bool { return a.Release() == release })
}

// maxKept bounds the releases of a namespace whose generated values are looked at.
const maxKept = 16

// keptReleases returns releases in a namespace that no stack wants, and that stay for now. Their records needn't be
// proven: whoever may write one there may write those of the wanted add-on, too.
func (q *clusterRun) keptReleases(namespace string) []deliver.Release {
	leaving := q.leavingReleases()
	var kept []deliver.Release
	for release := range q.installed {
		if release.Namespace == namespace && !q.isWanted(release) && !slices.Contains(leaving, release) {
			kept = append(kept, release)
		}
	}
	slices.SortFunc(kept, func(a, b deliver.Release) int { return strings.Compare(a.Name, b.Name) })
	return kept[:min(maxKept, len(kept))]
}

// stackReader returns one for the stacks of the cluster.
func (q *clusterRun) stackReader() stackReader {
	return stackReader{cache: q.Client, direct: q.APIReader, namespace: q.ca.Namespace, outdatedSince: q.memory.outdatedSince, now: q.now}
}
