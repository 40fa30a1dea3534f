// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// object names an object of the management cluster that add-ons take input from.
type object struct {
	kind string // as in "Secret", "DockerCluster.infrastructure.cluster.x-k8s.io", or kindPath
	key  client.ObjectKey
}

// kindPath is the kind of a path of the artifact root; it is the key's name.
const kindPath = "path"

// references remembers which ClusterAddons use which objects, so that a change
// of an object leads to the ClusterAddons it concerns. It is filled by
// reconciles: after a restart, each ClusterAddon is reconciled once.
type references struct {
	mu     sync.RWMutex
	users  map[object]sets.Set[client.ObjectKey]
	usedBy map[client.ObjectKey]sets.Set[object]
}

func newReferences() *references {
	return &references{
		users:  map[object]sets.Set[client.ObjectKey]{},
		usedBy: map[client.ObjectKey]sets.Set[object]{},
	}
}

// add notes that user uses o, before o is read: so no change is missed.
func (r *references) add(user client.ObjectKey, o object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.insert(user, o)
}

// replace sets the objects that user uses.
func (r *references) replace(user client.ObjectKey, objects sets.Set[object]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for o := range r.usedBy[user] {
		if !objects.Has(o) {
			r.remove(user, o)
		}
	}
	for o := range objects {
		r.insert(user, o)
	}
}

// forget drops all that user uses.
func (r *references) forget(user client.ObjectKey) { r.replace(user, nil) }

// of returns the users of o.
func (r *references) of(o object) []client.ObjectKey {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.users[o].UnsortedList()
}

// paths returns the paths of the artifact root that are used.
func (r *references) paths() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var paths []string
	for o := range r.users {
		if o.kind == kindPath {
			paths = append(paths, o.key.Name)
		}
	}
	return paths
}

func (r *references) insert(user client.ObjectKey, o object) {
	if r.users[o] == nil {
		r.users[o] = sets.New[client.ObjectKey]()
	}
	if r.usedBy[user] == nil {
		r.usedBy[user] = sets.New[object]()
	}
	r.users[o].Insert(user)
	r.usedBy[user].Insert(o)
}

func (r *references) remove(user client.ObjectKey, o object) {
	if r.users[o].Delete(user).Len() == 0 {
		delete(r.users, o)
	}
	if r.usedBy[user].Delete(o).Len() == 0 {
		delete(r.usedBy, user)
	}
}
