// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object names an object of the management cluster that add-ons take input from.
type Object struct {
	Kind string // as in "Secret", "DockerCluster.infrastructure.cluster.x-k8s.io", or kindPath
	Key  client.ObjectKey
}

// KindPath is the kind of a path of the artifact root; it is the key's name.
const KindPath = "path"

// References remembers which ClusterAddons use which objects, for changes of these.
//
// Key: the ClusterAddon, and the object.
// Bound: the objects that ClusterAddons name.
// Lost with it: nothing, as each ClusterAddon is reconciled once after a restart.
type References struct {
	mu    sync.RWMutex
	used  map[client.ObjectKey]sets.Set[Object]
	users map[Object]sets.Set[client.ObjectKey]
}

// Add has the user use these objects, too.
func (r *References) Add(user client.ObjectKey, objects ...Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used == nil {
		r.used, r.users = map[client.ObjectKey]sets.Set[Object]{}, map[Object]sets.Set[client.ObjectKey]{}
	}
	if r.used[user] == nil {
		r.used[user] = sets.New[Object]()
	}
	for _, o := range objects {
		if r.used[user].Insert(o); r.users[o] == nil {
			r.users[o] = sets.New[client.ObjectKey]()
		}
		r.users[o].Insert(user)
	}
}

// Set has the user use these objects, and no others.
func (r *References) Set(user client.ObjectKey, objects sets.Set[Object]) {
	r.Add(user, objects.UnsortedList()...)
	r.mu.Lock()
	defer r.mu.Unlock()
	for o := range r.used[user].Difference(objects) {
		if r.used[user].Delete(o); len(r.users[o].Delete(user)) == 0 {
			delete(r.users, o)
		}
	}
	if len(r.used[user]) == 0 {
		delete(r.used, user)
	}
}

// Of returns the users of o.
func (r *References) Of(o Object) []client.ObjectKey {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.users[o].UnsortedList()
}
