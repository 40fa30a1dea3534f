// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DeletionPolicy says what becomes of an add-on that a cluster is no longer to have.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionPolicyDelete uninstalls the add-on.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyOrphan leaves the add-on in the cluster, as a Helm release
	// that Chandler no longer manages.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// AddonStackSpec says which add-ons which clusters are to have.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterSelector) || (has(self.classNames) && size(self.classNames) > 0)",message="set spec.clusterSelector or spec.classNames; an empty clusterSelector ({}) selects every Cluster of the namespace"
// +kubebuilder:validation:XValidation:rule="has(self.addons) || has(self.source)",message="set spec.addons, or spec.source to a release of a Cluster Stack"
// +kubebuilder:validation:XValidation:rule="!has(self.addons) || !has(self.allowedRemovals) || !has(self.allowedRemovals.addons) || !self.addons.exists(a, a.name in self.allowedRemovals.addons)",message="spec.allowedRemovals.addons names an add-on that is in spec.addons; take it out of one of them"
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

	// clusterKinds are the kinds of clusters that clusterSelector selects from, by their labels.
	// Defaults to [Cluster]. Others are there if an instance has such a source
	// (--cluster-sources). At most 5.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:Enum=Cluster;ClusterProfile;Secret;KubeconfigContext;ManagementCluster
	ClusterKinds []string `json:"clusterKinds,omitempty"`

	// source is a bundle that holds the charts of this stack: addons[].chart.path is
	// a path in it then, as are those of kustomizations and manifests. Without addons it has to be a release of a Cluster Stack,
	// whose add-ons they become.
	// +optional
	Source *BundleSource `json:"source,omitempty"`

	// addons are the add-ons that each selected Cluster gets. They are installed
	// side by side, but for what dependsOn orders. From 1 to 64; with source they may
	// be left out.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Addons []Addon `json:"addons,omitempty"`

	// updates says how newer versions are taken, of what has a range for a version, and
	// of a Cluster Stack that is followed.
	// +optional
	Updates *Updates `json:"updates,omitempty"`

	// deletionPolicy says what becomes of add-ons that a Cluster is no longer to
	// have. These are the add-ons of a Cluster that is no longer selected, an
	// add-on that is taken off the list, and all of them when this object is
	// deleted. Delete (the default) uninstalls them, Orphan leaves them as they
	// are. When the Cluster itself is deleted, nothing is uninstalled. It isn't part of a revision: it counts as it is
	// written now.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// lifecycle says how the stack's add-ons hold upgrades of their clusters' Kubernetes.
	// +optional
	Lifecycle *StackLifecycle `json:"lifecycle,omitempty"`

	// drift says what happens when others change or delete objects of the stack's
	// add-ons. They are set right by default.
	// +optional
	Drift *Drift `json:"drift,omitempty"`

	// degradedAfterSeconds is how long a workload of an installed add-on may not be ready, in seconds, before the
	// add-on is Degraded. Defaults to 60.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	DegradedAfterSeconds *int32 `json:"degradedAfterSeconds,omitempty"`

	// serviceAccountName is the name of a ServiceAccount of the workload clusters, in the
	// namespace there that has the name of this object's namespace. The add-ons are
	// delivered, repaired and removed with its rights. Without it the rights are those of
	// the Cluster's kubeconfig, unless the provider instance requires a name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// removalLimit is how many of the stack's clusters may lose add-ons by changes
	// within ten minutes: a number, or a percentage of the clusters that have add-ons of
	// the stack. A change that goes beyond it is held until it is confirmed; nothing is
	// removed by it before. A change of a single cluster is held only if other clusters lost add-ons of the
	// stack within ten minutes before it. Defaults to 10%. With 100% nothing is held. It
	// isn't part of a revision.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="removalLimit is a number, from 0, or a percentage, from 0% to 100%"
	RemovalLimit *intstr.IntOrString `json:"removalLimit,omitempty"`

	// rollout says in which steps a new revision reaches the clusters; {} is one cluster in ten at a time, until the
	// first one fails. Without it, all clusters get a revision at once. It isn't part of a revision: a change of it counts
	// at once.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`

	// allowedRemovals lets edits take add-ons away from more clusters than removalLimit allows. It
	// may stay afterwards: it allows nothing that isn't named in it. It isn't part of a revision.
	// +optional
	AllowedRemovals *AllowedRemovals `json:"allowedRemovals,omitempty"`
}

// AllowedRemovals names what is meant to go.
// +kubebuilder:validation:MinProperties=1
type AllowedRemovals struct {
	// addons are the names of add-ons that the stack doesn't have any more, and that may be removed from all of its
	// clusters. At most 64. None of them may be in spec.addons.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=53
	Addons []string `json:"addons,omitempty"`

	// clusterSelector selects, by their labels, Clusters that an edit of the stack doesn't select any more, and that
	// may lose all of its add-ons. It is for edits alone: a Cluster that isn't selected any more as it was relabelled is
	// held as without it.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
}

// DefaultRemovalLimit is the default of spec.removalLimit.
var DefaultRemovalLimit = intstr.FromString("10%")

// Updates says how newer versions are taken.
// +kubebuilder:validation:MinProperties=1
type Updates struct {
	// interval is the time between two looks for newer versions. Each source has its
	// own moment within it, which the stacks that follow it share. Defaults to 10m.
	// From 1m to 24h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+)$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="interval is from 1m to 24h, with units as in 90s, 30m or 24h"
	Interval *metav1.Duration `json:"interval,omitempty"`

	// suspend keeps the versions that run now, as long as the ranges allow them.
	// status.following says what would be taken. Defaults to false.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
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
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.status.rollout.phase`,priority=10,description="What the rollout does, or what it waits for"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.clusters.updated`,priority=10,description="Clusters that are to have the revision that is rolled out"
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.clusters.waiting`,priority=10,description="Clusters on which nothing can be done now"
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.latestRevision`,priority=10
// +kubebuilder:printcolumn:name="Sources",type=string,JSONPath=`.status.conditions[?(@.type=="SourcesReady")].status`,priority=10,description="Whether all sources give what they are asked for"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="What is wrong, if anything is"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="metadata.name may have at most 52 characters: it is a label value, and the stem of the names of revisions"
type AddonStack struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which add-ons which clusters are to have.
	// +required
	Spec AddonStackSpec `json:"spec"`

	// status is what Chandler saw. Until it has looked, observedGeneration is -1.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status AddonStackStatus `json:"status,omitempty,omitzero"`
}

// DefaultUpdateInterval is the default of spec.updates.interval.
const DefaultUpdateInterval = 10 * time.Minute

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
