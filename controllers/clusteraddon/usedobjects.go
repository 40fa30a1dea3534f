// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// usedObjects returns what the add-ons take input from, also what isn't there yet.
func (q inputReader) usedObjects() sets.Set[inputObject] {
	used := sets.New[inputObject]()
	for i := range q.wanted {
		a := &q.wanted[i]
		at := q.reference(a)
		q.useSource(used, at)
		if at.Bundle != nil {
			q.useSource(used, reference.BundleOf(q.ca.Namespace, at.Bundle))
		}
		for _, ref := range a.sources {
			used.Insert(inputObject{kind: ref.Kind, key: q.keyOf(ref.Name)})
		}
		for _, ref := range templateRoots(q.cluster.Cluster, strings.Join(append(writtenNames(a.ValuesFrom), a.ValuesTemplate), "\n")) {
			used.Insert(inputObject{kind: ref.GroupKind().String(), key: q.keyOf(ref.Name)})
		}
	}
	return used
}

// useSource adds a path, or an object with what is there, credentials, or keys.
func (q inputReader) useSource(used sets.Set[inputObject], at reference.Reference) {
	for _, o := range at.Objects() {
		used.Insert(inputObject{kind: o.Kind, key: q.keyOf(o.Name)})
	}
	if at.Bundle == nil && at.Chart.Path != "" {
		used.Insert(inputObject{kind: kindPath, key: client.ObjectKey{Name: path.Clean(at.Chart.Path)}})
	}
}

// kindRevision is the kind of a stack's revisions.
const kindRevision = "ControllerRevision"

// assignedRevisions returns the revisions that the cluster is to run.
func assignedRevisions(ca *addonsv1.ClusterAddon) (revisions []inputObject) {
	for _, s := range ca.Spec.Stacks {
		if s.Revision != "" {
			revisions = append(revisions, inputObject{kind: kindRevision, key: client.ObjectKey{Namespace: ca.Namespace, Name: s.Revision}})
		}
	}
	return revisions
}
