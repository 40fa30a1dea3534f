// SPDX-License-Identifier: Apache-2.0

package member

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/files"
	"github.com/cluster-chandler/chandler/fleet/profiles"
	"github.com/cluster-chandler/chandler/fleet/secrets"
	"github.com/cluster-chandler/chandler/fleet/self"
)

// kinds are those beside Cluster, by the source of the fleet that has them.
var kinds = map[string]addonsv1.ClusterReference{
	secrets.Name:  {Kind: addonsv1.KindSecret},
	profiles.Name: {APIGroup: "multicluster.x-k8s.io", Kind: addonsv1.KindClusterProfile},
	files.Name:    {Kind: addonsv1.KindKubeconfigContext},
	self.Name:     {Kind: addonsv1.KindManagementCluster},
}

// sourceOf returns the source of the fleet that has a kind; false if none has.
func sourceOf(kind string) (source string, ok bool) {
	for source, reference := range kinds {
		if reference.Kind == kind {
			return source, true
		}
	}
	return "", false
}

// IsObject reports whether members of a kind are objects of the management cluster, which own
// their ClusterAddons.
func IsObject(kind string) bool {
	return kind != addonsv1.KindKubeconfigContext && kind != addonsv1.KindManagementCluster
}

// Names translate between the fleet's names of clusters and those of ClusterAddons.
type Names struct {
	// Namespace is that of the ClusterAddons of members that aren't objects.
	Namespace string
}

// ClusterAddon returns the name of the ClusterAddon of a cluster; false if it can have none, as its
// name isn't one that objects can have.
//
// The ClusterAddon of a Cluster has the Cluster's name. Others have their kind behind it, as in
// "prod.clusterprofile".
func (n Names) ClusterAddon(name multicluster.ClusterName) (types.NamespacedName, bool) {
	namespace, reference, ok := n.reference(name)
	if !ok {
		return types.NamespacedName{}, false
	}
	key := types.NamespacedName{Namespace: namespace, Name: nameFor(reference)}
	if reference.Kind == addonsv1.KindCluster {
		return key, true // it is an object's name
	}
	return key, len(validation.IsDNS1123Subdomain(key.Name)) == 0
}

// isCluster reports whether a cluster of the fleet is a Cluster of Cluster API.
func isCluster(name multicluster.ClusterName) bool { return !strings.Contains(name.String(), "#") }

func nameFor(reference addonsv1.ClusterReference) string {
	if reference.Kind == addonsv1.KindCluster {
		return reference.Name
	}
	return reference.Name + "." + strings.ToLower(reference.Kind)
}

// reference returns what a cluster of the fleet is.
func (n Names) reference(name multicluster.ClusterName) (namespace string, reference addonsv1.ClusterReference, ok bool) {
	source, local, found := strings.Cut(name.String(), "#")
	if !found {
		namespace, cluster, ok := strings.Cut(name.String(), "/")
		return namespace, addonsv1.ClusterReference{Kind: addonsv1.KindCluster, Name: cluster}, ok
	}
	if reference, found = kinds[source]; !found {
		return "", reference, false
	}
	if reference.Name, namespace = local, n.Namespace; IsObject(reference.Kind) {
		namespace, reference.Name, found = strings.Cut(local, "/")
	}
	return namespace, reference, found
}

// other returns the cluster, not of kind Cluster, that a ClusterAddon of a name is for; false if its
// name has no kind.
func (n Names) other(clusterAddon types.NamespacedName) (multicluster.ClusterName, bool) {
	for source, reference := range kinds {
		kind := reference.Kind
		if name, found := strings.CutSuffix(clusterAddon.Name, nameFor(addonsv1.ClusterReference{Kind: kind})); found {
			return inFleet(source, kind, clusterAddon.Namespace, name), IsObject(kind) || clusterAddon.Namespace == n.Namespace
		}
	}
	return "", false
}

// inFleet returns the fleet's name of a source's cluster.
func inFleet(source, kind, namespace, name string) multicluster.ClusterName {
	if IsObject(kind) {
		name = namespace + "/" + name
	}
	return fleet.NameOf(source, multicluster.ClusterName(name))
}

// Fleet returns the fleet's name of a ClusterAddon's cluster.
func (n Names) Fleet(ca *addonsv1.ClusterAddon) multicluster.ClusterName {
	if ca.Spec.ClusterRef == nil {
		return multicluster.ClusterName(ca.Namespace + "/" + ca.Spec.ClusterName)
	}
	kind := ca.Spec.ClusterRef.Kind
	source, ok := sourceOf(kind)
	if !ok { // of a newer API: no source has that name
		source = kind
	}
	return inFleet(source, kind, ca.Namespace, ca.Spec.ClusterRef.Name)
}
