// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"path"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// object names an object of the management cluster that add-ons take input from.
type object struct {
	kind string // as in "Secret", "DockerCluster.infrastructure.cluster.x-k8s.io", or kindPath
	key  client.ObjectKey
}

// kindPath is the kind of a path of the artifact root; it is the key's name.
const kindPath = "path"

// references remembers which ClusterAddons use which objects, for changes of these. Reconciles fill
// it: after a restart, each ClusterAddon is reconciled once.
type references struct {
	mu     sync.RWMutex
	usedBy map[client.ObjectKey]sets.Set[object]
}

func newReferences() *references {
	return &references{usedBy: map[client.ObjectKey]sets.Set[object]{}}
}

// replace sets the objects that user uses.
func (r *references) replace(user client.ObjectKey, objects sets.Set[object]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.usedBy[user] = objects
}

// forget drops all that user uses.
func (r *references) forget(user client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.usedBy, user)
}

// of returns the users of o.
func (r *references) of(o object) []client.ObjectKey {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var users []client.ObjectKey
	for user, used := range r.usedBy {
		if used.Has(o) {
			users = append(users, user)
		}
	}
	return users
}

// usedObjects returns what the add-ons take input from, also what isn't there yet.
func (q *request) usedObjects() sets.Set[object] {
	used := sets.New[object]()
	for i := range q.wanted {
		a := &q.wanted[i]
		at := q.reference(a)
		q.useSource(used, at)
		if at.Bundle != nil {
			q.useSource(used, reference.BundleOf(q.ca.Namespace, at.Bundle))
		}
		for _, ref := range a.ValuesFrom {
			used.Insert(object{kind: ref.Kind, key: q.keyOf(ref.Name)})
		}
		for _, ref := range templateRoots(q.cluster.Cluster, a.ValuesTemplate) {
			used.Insert(object{kind: kindOf(ref.GroupKind()), key: q.keyOf(ref.Name)})
		}
	}
	return used
}

// useSource adds a path, or an object with what is there, credentials, or keys.
func (q *request) useSource(used sets.Set[object], at reference.Reference) {
	for _, o := range at.Objects() {
		used.Insert(object{kind: o.Kind, key: q.keyOf(o.Name)})
	}
	if at.Bundle == nil && at.Chart.Path != "" {
		used.Insert(object{kind: kindPath, key: client.ObjectKey{Name: path.Clean(at.Chart.Path)}})
	}
}
