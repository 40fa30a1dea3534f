// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// addon is one add-on that the cluster is to have.
type addon struct {
	addonsv1.Addon

	stack          string
	outdated       bool                   // the stack's revision is; see assignedStack.addons
	bundle         *addonsv1.BundleSource // of the stack, nil if it has none
	deletionPolicy addonsv1.DeletionPolicy
	stackDrift     *addonsv1.Drift
	// serviceAccount is the name of the one that the add-on is delivered as, "" for none.
	serviceAccount string
	// ranges are those of Kubernetes versions that the spec has.
	ranges []addonsv1.KubernetesRange
	// incompatible says why the add-on isn't for the cluster's Kubernetes, "" if it is.
	incompatible string
	// unfit says why it isn't for a version that an upgrade leads to, "" if it is.
	unfit string
	// lifecycle is that of the stack, nil if it has none.
	lifecycle *addonsv1.StackLifecycle
}

// release names the add-on's Helm release.
func (a *addon) release() deliver.Release {
	return deliver.Release{Namespace: cmp.Or(a.Namespace, addonsv1.DefaultAddonNamespace), Name: a.Name}
}

// status returns the status of an add-on of which nothing else is known.
func (a *addon) status() addonsv1.AddonStatus {
	return addonsv1.AddonStatus{Name: a.Name, Namespace: a.release().Namespace, Stack: a.stack, ServiceAccountName: a.serviceAccount}
}

// directory of the kustomization or the manifests, "" for the artifact's root.
func (a *addon) directory() string {
	switch {
	case a.Kustomization != nil:
		return a.Kustomization.Directory
	case a.Manifests != nil:
		return a.Manifests.Directory
	}
	return ""
}

// claims decides which stack has each release: the one that installed it, or
// else the first in the list. The others are told. A stack that is unresolved, and
// keeps what it installed, may want it still.
func claims(wanted []addon, installed map[deliver.Release]deliver.Summary, stacks map[string]unresolvedStack) map[deliver.Release]string {
	holder := map[deliver.Release]string{}
	for i := range wanted {
		release := wanted[i].release()
		_, taken := holder[release]
		record, ok := installed[release]
		switch {
		case ok && stacks[record.Stack].keepsReleases:
			holder[release] = record.Stack
		case !taken || ok && record.Stack == wanted[i].stack:
			holder[release] = wanted[i].stack
		}
	}
	return holder
}
