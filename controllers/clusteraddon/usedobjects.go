// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
