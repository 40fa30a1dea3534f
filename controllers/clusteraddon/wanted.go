// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// addon is one add-on that the cluster is to have.
type addon struct {
	addonsv1.Addon

	stack          string
	bundle         *addonsv1.BundleSource // of the stack, nil if it has none
	deletionPolicy addonsv1.DeletionPolicy
}

// release names the add-on's Helm release.
func (a *addon) release() deliver.Release {
	return deliver.Release{Namespace: cmp.Or(a.Namespace, addonsv1.DefaultAddonNamespace), Name: a.Name}
}

// wanted reads the add-ons of all stacks that the cluster is to run, each one
// after those it depends on. What is not wanted is removed, so a stack without a
// revision that can be read is undecided: what is installed of it stays.
func (r *Reconciler) wanted(ctx context.Context, ca *addonsv1.ClusterAddon) (wanted []addon, undecided sets.Set[string], err error) {
	undecided = sets.New[string]()
	for _, assigned := range ca.Spec.Stacks {
		if assigned.Revision == "" {
			undecided.Insert(assigned.Name)
			continue
		}
		revision := &appsv1.ControllerRevision{}
		key := client.ObjectKey{Namespace: ca.Namespace, Name: assigned.Revision}
		if err := r.Client.Get(ctx, key, revision); err != nil {
			if !apierrors.IsNotFound(err) {
				return nil, nil, fmt.Errorf("reading revision of AddonStack %s: %w", assigned.Name, err)
			}
			undecided.Insert(assigned.Name) // its coming is an event
			continue
		}
		spec, err := stack.SpecOf(revision)
		if err != nil {
			return nil, nil, err
		}
		for _, a := range stack.InOrder(spec.Addons) {
			wanted = append(wanted, addon{
				Addon:          a,
				stack:          assigned.Name,
				bundle:         spec.Source,
				deletionPolicy: cmp.Or(spec.DeletionPolicy, addonsv1.DeletionPolicyDelete),
			})
		}
	}
	return wanted, undecided, nil
}

// claims decides which stack has each release: the one that installed it, or
// else the first in the list. The others are told.
func claims(wanted []addon, installed map[deliver.Release]deliver.Summary) map[deliver.Release]string {
	holder := map[deliver.Release]string{}
	for i := range wanted {
		release := wanted[i].release()
		_, taken := holder[release]
		if record, ok := installed[release]; !taken || ok && record.Stack == wanted[i].stack {
			holder[release] = wanted[i].stack
		}
	}
	return holder
}
