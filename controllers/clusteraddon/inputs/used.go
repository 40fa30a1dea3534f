// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"path"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// UsedObjects returns what the add-ons take input from, also what isn't there yet.
func (q Reader) UsedObjects(all []wanted.Addon) sets.Set[Object] {
	used := sets.New[Object]()
	for i := range all {
		a := &all[i]
		at := a.Reference(q.ClusterAddon.Namespace)
		q.useSource(used, at)
		if at.Bundle != nil {
			q.useSource(used, reference.BundleOf(q.ClusterAddon.Namespace, at.Bundle))
		}
		for _, ref := range a.Sources {
			used.Insert(Object{Kind: ref.Kind, Key: q.keyOf(ref.Name)})
		}
		for _, ref := range q.Values.Roots(&a.Addon) {
			used.Insert(Object{Kind: ref.GroupKind().String(), Key: q.keyOf(ref.Name)})
		}
	}
	return used
}

// useSource adds a path, or an object with what is there, credentials, or keys.
func (q Reader) useSource(used sets.Set[Object], at reference.Reference) {
	for _, o := range at.Objects() {
		used.Insert(Object{Kind: o.Kind, Key: q.keyOf(o.Name)})
	}
	if at.Bundle == nil && at.Chart.Path != "" {
		used.Insert(Object{Kind: KindPath, Key: client.ObjectKey{Name: path.Clean(at.Chart.Path)}})
	}
}

// Kinds of a stack, and of its revisions.
const (
	KindStack    = "AddonStack"
	KindRevision = "ControllerRevision"
)

// AssignedRevisions returns the revisions that the cluster is to run.
func AssignedRevisions(ca *addonsv1.ClusterAddon) (revisions []Object) {
	for _, s := range ca.Spec.Stacks {
		if s.Revision != "" {
			revisions = append(revisions, Object{Kind: KindRevision, Key: client.ObjectKey{Namespace: ca.Namespace, Name: s.Revision}})
		}
	}
	return revisions
}
