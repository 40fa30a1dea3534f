// SPDX-License-Identifier: Apache-2.0

// Package wanted has the add-ons that a cluster is to have: what the revisions of stacks say of each one. It asks nothing.
package wanted

import (
	"cmp"
	"time"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Addon is one add-on that the cluster is to have.
type Addon struct {
	addonsv1.Addon

	Stack    string
	Spec     addonsv1.AddonStackSpec // of the stack's revision
	Outdated bool                    // the revision is; see assignedStack.addons
	Rollout  *addonsv1.Rollout       // of the stack as it is written now, nil without one
	Paused   bool                    // the stack is
	// ranges are those of Kubernetes versions that the spec has.
	Ranges []addonsv1.KubernetesRange
	// incompatible says why the add-on isn't for the cluster's Kubernetes, "" if it is.
	Incompatible string
	// unfit says why it isn't for a version that an upgrade leads to, "" if it is.
	Unfit string
	// sources are those of valuesFrom, by the names that they have for the cluster.
	Sources []addonsv1.ValuesReference
	// pinned are the digests of values that the stack's revision was made with.
	Pinned stack.Inputs
	// unnamed is why the names of the sources can't be made, nil if they are.
	Unnamed error
}

// Release names the add-on's Helm release.
func (a *Addon) Release() deliver.Release {
	return deliver.Release{Namespace: cmp.Or(a.Namespace, addonsv1.DefaultAddonNamespace), Name: a.Name}
}

// Qualified returns the add-on as "stack/name".
func (a *Addon) Qualified() string { return stack.Qualified(a.Stack, a.Name) }

// Status returns the status of an add-on of which nothing else is known.
func (a *Addon) Status() addonsv1.AddonStatus {
	return addonsv1.AddonStatus{Name: a.Name, Namespace: a.Release().Namespace, Stack: a.Stack, ServiceAccountName: a.Spec.ServiceAccountName}
}

// Directory returns that of the kustomization or the manifests, "" for the artifact's root.
func (a *Addon) Directory() string {
	switch {
	case a.Kustomization != nil:
		return a.Kustomization.Directory
	case a.Manifests != nil:
		return a.Manifests.Directory
	}
	return ""
}

// AdoptedRelease returns the other release that the add-on takes over, zero if there is none.
func (a *Addon) AdoptedRelease() deliver.Release {
	own, from := a.Release(), a.AdoptRelease
	if from == nil {
		return deliver.Release{}
	}
	previous := deliver.Release{Namespace: cmp.Or(from.StorageNamespace, own.Namespace), Name: cmp.Or(from.Name, own.Name)}
	if previous == own {
		return deliver.Release{}
	}
	return previous
}

// ProgressDeadline returns how long a change of the add-on may take.
func (a *Addon) ProgressDeadline() time.Duration {
	return time.Duration(ptr.Deref(a.ProgressDeadlineSeconds, addonsv1.DefaultProgressDeadlineSeconds)) * time.Second
}

// IsRemovedOnDeletion reports whether the add-on is removed before its Cluster is deleted. A pause doesn't hold that up.
func (a *Addon) IsRemovedOnDeletion() bool {
	return !a.Paused && a.Lifecycle != nil && a.Lifecycle.OnClusterDelete == addonsv1.OnClusterDeleteRemove && a.Spec.DeletionPolicy != addonsv1.DeletionPolicyOrphan
}

// DegradedAfter is how long something has to be wrong with an installed add-on before it is Degraded.
func (a *Addon) DegradedAfter() time.Duration {
	return time.Duration(ptr.Deref(a.Spec.DegradedAfterSeconds, int32(addonsv1.DefaultDegradedAfter/time.Second))) * time.Second
}

// DriftRules returns the policy and the rules of the stack and the add-on for drift. While the stack is paused, it is only told of.
func (a *Addon) DriftRules() (addonsv1.DriftPolicy, drift.Rules) {
	policy, rules := addonsv1.DriftPolicyCorrect, drift.Rules{}
	for _, d := range []*addonsv1.Drift{a.Spec.Drift, a.Drift} {
		if d != nil {
			policy = cmp.Or(d.Policy, policy)
			rules = append(rules, d.Ignore...)
		}
	}
	if a.Paused && policy == addonsv1.DriftPolicyCorrect {
		policy = addonsv1.DriftPolicyReport
	}
	return policy, rules
}

// Stated returns terms with what the spec says of them.
func (a *Addon) Stated(terms deliver.Terms) deliver.Terms {
	terms.Stack, terms.DependsOn, terms.ServiceAccount = a.Stack, a.DependsOn, a.Spec.ServiceAccountName
	terms.DeletionPolicy, terms.DataPolicy = cmp.Or(a.Spec.DeletionPolicy, addonsv1.DeletionPolicyDelete), a.DataPolicy
	return terms
}

// Reference says where the chart, kustomization or manifests of the add-on are, for a cluster of the namespace.
func (a *Addon) Reference(namespace string) reference.Reference {
	return reference.AddonOf(namespace, &a.Addon, a.Spec.Source)
}
