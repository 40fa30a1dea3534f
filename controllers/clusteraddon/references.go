// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inputObject names an object of the management cluster that add-ons take input from.
type inputObject struct {
	kind string // as in "Secret", "DockerCluster.infrastructure.cluster.x-k8s.io", or kindPath
	key  client.ObjectKey
}

// kindPath is the kind of a path of the artifact root; it is the key's name.
const kindPath = "path"

// references remembers which ClusterAddons use which objects, for changes of these. Reconciles fill
// it: after a restart, each ClusterAddon is reconciled once.
type references struct {
	usedBy sync.Map // client.ObjectKey of a ClusterAddon to sets.Set[inputObject]
}

// of returns the users of o.
func (r *references) of(o inputObject) (users []client.ObjectKey) {
	r.usedBy.Range(func(user, used any) bool {
		if used.(sets.Set[inputObject]).Has(o) {
			users = append(users, user.(client.ObjectKey))
		}
		return true
	})
	return users
}
