// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-chandler/chandler/internal/instance"
)

// podNamespaceFile holds the namespace of the pod, as client-go and
// controller-runtime read it.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// identity has the scope and the names that this process runs with. Values that no flag says follow
// from others.
type identity struct {
	scope instance.Scope
	// namespace and name of the ProviderInstance.
	namespace, name string
	// lease elects the leader; it is in leaseNamespace, "" if that isn't known.
	lease, leaseNamespace string
}

func (o *Options) identity() identity {
	scope := instance.Scope{Namespaces: o.namespaces, WatchFilter: o.watchFilter}
	pod := podNamespace()
	lease := scope.LeaderElectionID()
	firstNamespace := append(slices.Clone(o.namespaces), metav1.NamespaceDefault)[0]
	return identity{
		scope:          scope,
		namespace:      cmp.Or(o.instanceNamespace, pod, o.leaderElectNamespace, firstNamespace),
		name:           cmp.Or(o.instanceName, strings.TrimPrefix(lease, "controller-leader-election-")),
		lease:          lease,
		leaseNamespace: cmp.Or(o.leaderElectNamespace, pod),
	}
}

// leaseBeside returns the Lease in the namespace of the ProviderInstance, "" if the
// leader is elected elsewhere, or not at all. Only that one tells from the object
// alone that a previous holder is excluded.
func (i identity) leaseBeside(elected bool) string {
	if elected && i.leaseNamespace == i.namespace {
		return i.lease
	}
	return ""
}

// podNamespace returns the namespace of the pod, "" outside of one.
func podNamespace() string {
	data, err := os.ReadFile(podNamespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
