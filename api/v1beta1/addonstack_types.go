// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeletionPolicy says what becomes of an add-on that a cluster is no longer to have.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionPolicyDelete uninstalls the add-on.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyOrphan leaves the add-on in the cluster, as a Helm release
	// that Chandler no longer looks after.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// AddonStackSpec says which add-ons which clusters are to have.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterSelector) || (has(self.classNames) && size(self.classNames) > 0)",message="set spec.clusterSelector or spec.classNames; an empty clusterSelector ({}) selects every Cluster of the namespace"
type AddonStackSpec struct {
	// clusterSelector selects Clusters of this object's namespace by their labels.
	// An empty selector ({}) selects all of them. When classNames is set too, a
	// Cluster has to match both.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// classNames selects Clusters by the name of their ClusterClass
	// (Cluster.spec.topology.classRef.name); any one of the names will do.
	// At most 64.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ClassNames []string `json:"classNames,omitempty"`

	// addons are the add-ons that each selected Cluster gets. They are installed
	// side by side, but for what dependsOn orders. From 1 to 64.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Addons []Addon `json:"addons"`

	// deletionPolicy says what becomes of the add-ons of a Cluster that is no
	// longer selected, of an add-on that is taken off the list, and of all of
	// them when this object is deleted. Delete (the default) uninstalls them,
	// Orphan leaves them as they are. When the Cluster itself is deleted, nothing
	// is uninstalled.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// AddonStackStatus is what Chandler saw of an AddonStack.
// +kubebuilder:validation:MinProperties=1
type AddonStackStatus struct {
	// conditions: Ready sums up Valid and ClustersReady.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the metadata.generation this status is about.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// latestRevision is the name of the ControllerRevision that holds the newest
	// valid spec.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	LatestRevision string `json:"latestRevision,omitempty"`

	// clusters counts the Clusters this stack selects.
	// +optional
	Clusters *ClusterCounts `json:"clusters,omitempty"`

	// instances are there if the stack is meant for the Clusters of all filters
	// (label cluster.x-k8s.io/watch-filter: shared): each instance that has Clusters
	// in the namespace says what it sees, and the rest of the status sums them up.
	// At most 64.
	// +optional
	// +listType=map
	// +listMapKey=watchFilter
	// +kubebuilder:validation:MaxItems=64
	Instances []StackInstance `json:"instances,omitempty"`
}

// StackInstance is what one instance says of a stack, about the Clusters in its
// own scope.
type StackInstance struct {
	// watchFilter of the instance (--watch-filter).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	WatchFilter string `json:"watchFilter"`

	// observedGeneration is the metadata.generation that the instance has seen.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// latestRevision is the name of the newest ControllerRevision that the instance
	// has seen.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	LatestRevision string `json:"latestRevision,omitempty"`

	// clusters counts the instance's Clusters that the stack selects.
	// +optional
	Clusters *ClusterCounts `json:"clusters,omitempty"`

	// conditions: Valid, Paused and ClustersReady, as this instance sees them. At most 8.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterCounts counts the Clusters that an AddonStack selects. A Cluster is
// counted in total, and in at most one of the others.
type ClusterCounts struct {
	// total is the number of Clusters selected.
	// +required
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"`

	// ready is the number of Clusters on which all of this stack's add-ons are
	// ready, at the newest revision.
	// +required
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready"`

	// failed is the number of Clusters on which one of this stack's add-ons failed.
	// +required
	// +kubebuilder:validation:Minimum=0
	Failed int32 `json:"failed"`

	// waiting is the number of Clusters on which nothing can be done now: the
	// control plane isn't up, the Cluster is paused, being deleted, or can't be reached.
	// +required
	// +kubebuilder:validation:Minimum=0
	Waiting int32 `json:"waiting"`
}

// AddonStack says which add-ons, at which versions, which clusters of its
// namespace are to have.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=addonstacks,scope=Namespaced,shortName=as,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusters.total`,description="Clusters selected"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.clusters.ready`,description="Clusters on which all add-ons are ready, at the newest revision"
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.clusters.failed`,description="Clusters on which an add-on failed"
// +kubebuilder:printcolumn:name="OK",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="The Ready condition"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="What is wrong, if anything is"
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.latestRevision`,priority=10
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="metadata.name may have at most 52 characters: it is a label value, and the stem of the names of revisions"
type AddonStack struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which add-ons which clusters are to have.
	// +required
	Spec AddonStackSpec `json:"spec"`

	// status is what Chandler saw.
	// +optional
	Status AddonStackStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions, as Cluster API's condition library asks for.
func (s *AddonStack) GetConditions() []metav1.Condition { return s.Status.Conditions }

// SetConditions sets the conditions.
func (s *AddonStack) SetConditions(conditions []metav1.Condition) { s.Status.Conditions = conditions }

// AddonStackList is a list of AddonStacks.
//
// +kubebuilder:object:root=true
type AddonStackList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AddonStack `json:"items"`
}
