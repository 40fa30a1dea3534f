// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-chandler/chandler/internal/instance/registration"
)

// podNamespaceFile holds the namespace of the pod, as client-go and
// controller-runtime read it.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// identity returns the names that this process runs with. Values that no flag says follow from others.
func (o *Options) identity() registration.Options {
	is, pod, lease := o.instance, podNamespace(), o.instance.Scope.LeaderElectionID()
	firstNamespace := append(slices.Clone(is.Scope.Namespaces), metav1.NamespaceDefault)[0]
	is.Namespace = cmp.Or(is.Namespace, pod, o.manager.LeaderElectionNamespace, firstNamespace)
	is.Name = cmp.Or(is.Name, strings.TrimPrefix(lease, "controller-leader-election-"))
	is.LeaderElection = o.elects()
	// A Lease elsewhere doesn't tell from the object alone that a previous holder is excluded.
	if is.LeaderElection && is.Namespace == cmp.Or(o.manager.LeaderElectionNamespace, pod) {
		is.LeaseName = lease
	}
	return is
}

// podNamespace returns the namespace of the pod, "" outside of one.
func podNamespace() string {
	data, err := os.ReadFile(podNamespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
