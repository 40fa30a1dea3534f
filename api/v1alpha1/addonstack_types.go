// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// AddonStackSpec says which add-ons which clusters are to have.
//
// The API server asks the rules of the version that a client writes. So each field has the rules of its
// field in v1beta1, and a rule about several fields needs all of them here.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterSelector) || (has(self.classNames) && size(self.classNames) > 0)",message="set spec.clusterSelector or spec.classNames; an empty clusterSelector ({}) selects every Cluster of the namespace"
// +kubebuilder:validation:XValidation:rule="has(self.addons) || has(self.bundle)",message="set spec.addons, or spec.bundle to a release of a Cluster Stack"
// +kubebuilder:validation:XValidation:rule="!has(self.addons) || !has(self.removals) || !has(self.removals.allowed) || !has(self.removals.allowed.addons) || !self.addons.exists(a, a.name in self.removals.allowed.addons)",message="spec.removals.allowed.addons names an add-on that is in spec.addons; take it out of one of them"
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

	// bundle is source of v1beta1: it holds the charts of this stack. Without addons it
	// has to be a release of a Cluster Stack, whose add-ons they become.
	// +optional
	Bundle *addonsv1.BundleSource `json:"bundle,omitempty"`

	// addons are the add-ons that each selected Cluster gets. From 1 to 64; with bundle
	// they may be left out.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Addons []addonsv1.Addon `json:"addons,omitempty"`

	// deletionPolicy says what becomes of add-ons that a Cluster is no longer to have.
	// Delete (the default) uninstalls them, Orphan leaves them as they are.
	// +optional
	DeletionPolicy addonsv1.DeletionPolicy `json:"deletionPolicy,omitempty"`

	// removals says how many clusters may lose add-ons.
	// +optional
	Removals Removals `json:"removals,omitempty,omitzero"`

	// drift says what happens when others change or delete objects of the stack's
	// add-ons. They are set right by default.
	// +optional
	Drift *addonsv1.Drift `json:"drift,omitempty"`
}

// Removals says how many clusters may lose add-ons.
// +kubebuilder:validation:MinProperties=1
type Removals struct {
	// limit is removalLimit of v1beta1: how many of the stack's clusters may lose add-ons by
	// changes within ten minutes, as a number or a percentage. Defaults to 10%.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="limit is a number, from 0, or a percentage, from 0% to 100%"
	Limit *intstr.IntOrString `json:"limit,omitempty"`

	// allowed is allowedRemovals of v1beta1. It lets the edit that brings it take add-ons away
	// from more clusters than limit allows.
	// +optional
	Allowed *addonsv1.AllowedRemovals `json:"allowed,omitempty"`
}

// AddonStack says which add-ons, at which versions, which clusters of its
// namespace are to have.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=addonstacks,scope=Namespaced,shortName=as,categories=cluster-api
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusters.total`,description="Clusters selected"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.clusters.ready`,description="Clusters on which all add-ons are ready, at the newest revision"
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.clusters.failed`,description="Clusters on which an add-on failed"
// +kubebuilder:printcolumn:name="OK",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="The Ready condition"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
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
	Status addonsv1.AddonStackStatus `json:"status,omitempty,omitzero"`
}

// AddonStackList is a list of AddonStacks.
//
// +kubebuilder:object:root=true
type AddonStackList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AddonStack `json:"items"`
}
