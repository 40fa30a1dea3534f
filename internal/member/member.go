// SPDX-License-Identifier: Apache-2.0

// Package member knows the clusters that add-ons can be delivered to, whatever stands for them in
// the management cluster. A member is a Cluster of Cluster API, or a cluster that another source of
// the fleet reports.
package member

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Member is a cluster that add-ons can be delivered to.
type Member struct {
	addonsv1.ClusterReference
	Namespace string
	// Labels are those that AddonStacks select by.
	Labels map[string]string
	// Properties are what the fleet's source says beside them.
	Properties map[string]string
	// ClassName is that of a Cluster's ClusterClass; empty if it has none.
	ClassName string
	// Paused, Deleting and Initialized say whether it may be worked on.
	Paused, Deleting, Initialized bool
	// Owner of the ClusterAddon; nil for what isn't an object.
	Owner *metav1.OwnerReference
	// Cluster is nil for all other kinds.
	Cluster *clusterv1.Cluster
}

// OfCluster returns the Member that a Cluster is.
func OfCluster(cluster *clusterv1.Cluster) *Member {
	return &Member{
		ClusterReference: addonsv1.ClusterReference{APIGroup: clusterv1.GroupVersion.Group, Kind: addonsv1.KindCluster, Name: cluster.Name},
		Namespace:        cluster.Namespace,
		Labels:           cluster.Labels,
		ClassName:        cluster.Spec.Topology.ClassRef.Name,
		Paused:           ptr.Deref(cluster.Spec.Paused, false),
		Deleting:         !cluster.DeletionTimestamp.IsZero(),
		Initialized:      ptr.Deref(cluster.Status.Initialization.ControlPlaneInitialized, false),
		Owner:            &metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: addonsv1.KindCluster, Name: cluster.Name, UID: cluster.UID},
		Cluster:          cluster,
	}
}

// String returns the kind and the name, as in "Cluster prod".
func (m *Member) String() string { return fmt.Sprintf("%s %s", m.Kind, m.Name) }

// Reference returns what spec.clusterRef of the member's ClusterAddon is: nil for a Cluster.
func (m *Member) Reference() *addonsv1.ClusterReference {
	if m.Kind == addonsv1.KindCluster {
		return nil
	}
	return &m.ClusterReference
}

// View returns what templates see as .Member.
func (m *Member) View() map[string]any {
	labels, properties := map[string]any{}, map[string]any{}
	for key, value := range m.Labels {
		labels[key] = value
	}
	for key, value := range m.Properties {
		properties[key] = value
	}
	return map[string]any{
		"apiGroup": m.APIGroup, "kind": m.Kind, "namespace": m.Namespace, "name": m.Name, "labels": labels, "properties": properties,
	}
}

// Object returns the object that stands for the member, for events; nil if there is none.
func (m *Member) Object() runtime.Object {
	switch {
	case m.Cluster != nil:
		return m.Cluster
	case m.Owner != nil:
		return &corev1.ObjectReference{APIVersion: m.Owner.APIVersion, Kind: m.Owner.Kind, Namespace: m.Namespace, Name: m.Owner.Name, UID: m.Owner.UID}
	}
	return nil
}

// ClusterAddon returns the name of the member's ClusterAddon.
func (m *Member) ClusterAddon() types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: nameFor(m.ClusterReference)}
}
