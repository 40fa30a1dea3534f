// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// addon is one add-on that the cluster is to have.
type addon struct {
	addonsv1.Addon

	stack    string
	spec     addonsv1.AddonStackSpec // of the stack's revision
	outdated bool                    // the revision is; see assignedStack.addons
	rollout  *addonsv1.Rollout       // of the stack as it is written now, nil without one
	paused   bool                    // the stack is
	// ranges are those of Kubernetes versions that the spec has.
	ranges []addonsv1.KubernetesRange
	// incompatible says why the add-on isn't for the cluster's Kubernetes, "" if it is.
	incompatible string
	// unfit says why it isn't for a version that an upgrade leads to, "" if it is.
	unfit string
	// sources are those of valuesFrom, by the names that they have for the cluster.
	sources []addonsv1.ValuesReference
	// pinned are the digests of values that the stack's revision was made with.
	pinned stack.Inputs
	// unnamed is why the names of the sources can't be made, nil if they are.
	unnamed error
}

// release names the add-on's Helm release.
func (a *addon) release() deliver.Release {
	return deliver.Release{Namespace: cmp.Or(a.Namespace, addonsv1.DefaultAddonNamespace), Name: a.Name}
}

// qualified returns the add-on as "stack/name".
func (a *addon) qualified() string { return stack.Qualified(a.stack, a.Name) }

// status returns the status of an add-on of which nothing else is known.
func (a *addon) status() addonsv1.AddonStatus {
	return addonsv1.AddonStatus{Name: a.Name, Namespace: a.release().Namespace, Stack: a.stack, ServiceAccountName: a.spec.ServiceAccountName}
}

// directory returns that of the kustomization or the manifests, "" for the artifact's root.
func (a *addon) directory() string {
	switch {
	case a.Kustomization != nil:
		return a.Kustomization.Directory
	case a.Manifests != nil:
		return a.Manifests.Directory
	}
	return ""
}

// releaseHolders decides which stack has each release: the one that installed it, or else the first in the
// list. An unresolved stack that keeps its releases may still want what it installed.
func releaseHolders(wanted []addon, installed map[deliver.Release]deliver.Summary, stacks map[string]unresolvedStack, assigned []addonsv1.StackRevision) map[deliver.Release]string {
	holder := map[deliver.Release]string{}
	for i := range wanted {
		release := wanted[i].release()
		_, taken := holder[release]
		record, ok := installed[release]
		switch {
		case ok && stacks[record.Stack].state.KeepsReleases() && !slices.Contains(stack.Assigned(assigned, record.Stack).MovedAddons, record.String()):
			holder[release] = record.Stack
		case !taken || ok && record.Stack == wanted[i].stack:
			holder[release] = wanted[i].stack
		}
	}
	return holder
}

// adoptedRelease returns the other release that the add-on takes over, zero if there is none.
func adoptedRelease(a *addon) deliver.Release {
	own, from := a.release(), a.AdoptRelease
	if from == nil {
		return deliver.Release{}
	}
	previous := deliver.Release{Namespace: cmp.Or(from.StorageNamespace, own.Namespace), Name: cmp.Or(from.Name, own.Name)}
	if previous == own {
		return deliver.Release{}
	}
	return previous
}

func progressDeadline(a *addon) time.Duration {
	return time.Duration(ptr.Deref(a.ProgressDeadlineSeconds, addonsv1.DefaultProgressDeadlineSeconds)) * time.Second
}

// hasSay reports whether the add-on says anything about upgrades of Kubernetes.
func (a *addon) hasSay() bool {
	return a.point() != addonsv1.UpgradeIndependent || a.present() != addonsv1.PresentAlways || len(a.Chart.Versions) > 0 || a.Lifecycle != nil && a.Lifecycle.KubernetesVersions != ""
}

// point returns the point of an upgrade at which changes of the add-on are delivered.
func (a *addon) point() addonsv1.UpgradePoint {
	if a.Lifecycle == nil {
		return addonsv1.UpgradeIndependent
	}
	return cmp.Or(a.Lifecycle.Upgrade, addonsv1.UpgradeIndependent)
}

// present returns when the add-on is there.
func (a *addon) present() addonsv1.Present { return stack.PresentOf(&a.Addon) }

// awaitedAt returns the point at which an upgrade waits for the add-on to be ready.
func (a *addon) awaitedAt() addonsv1.UpgradePoint {
	if a.present() == addonsv1.PresentBeforeUpgrade {
		return addonsv1.UpgradeBeforeControlPlane
	}
	return a.point()
}

// statusOf returns the status of an add-on that only a record knows.
func statusOf(record deliver.Summary, phase addonsv1.AddonPhase) addonsv1.AddonStatus {
	status := addonsv1.AddonStatus{Name: record.Name, Namespace: record.Namespace, Stack: record.Stack, Phase: phase}
	describe(&status, record)
	return status
}

// describe fills the status with what a record says.
func describe(status *addonsv1.AddonStatus, record deliver.Summary) {
	status.Version, status.Revision = record.Version, int32(record.Revision)
	status.Objects = &addonsv1.ObjectCounts{Total: record.Objects}
	if record.Status == deliver.StatusDeployed {
		status.Objects.Ready = record.Objects
	}
}

// isInstalled reports whether an add-on of the phase is installed as wanted, and was ready. Others don't wait for one
// that is Degraded since: their change may be what helps.
func isInstalled(phase addonsv1.AddonPhase) bool {
	return phase == addonsv1.AddonReady || phase == addonsv1.AddonDegraded
}

// isHeldBack reports whether a change waits for a point of an upgrade of Kubernetes, by its reason.
func isHeldBack(reason string) bool {
	return reason == reasons.WaitingForControlPlane || reason == reasons.WaitingForWorkers
}

// isRemoving reports whether the removal has begun: half of the add-on may be gone.
func isRemoving(record deliver.Summary) bool {
	return record.Complete && record.Status == deliver.StatusUninstalling
}
