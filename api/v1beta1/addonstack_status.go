// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddonStackStatus is what Chandler saw of an AddonStack.
// +kubebuilder:validation:MinProperties=1
type AddonStackStatus struct {
	// conditions: Ready sums up Valid and ClustersReady, and SourcesReady while the
	// spec waits for it. Stalled is there while somebody has to act.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the metadata.generation this status is about; -1 until the first look.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// latestRevision is the name of the ControllerRevision that holds the newest
	// valid spec.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	LatestRevision string `json:"latestRevision,omitempty"`

	// history has the last ten changes, the newest first. It is for people: nothing is decided by it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []StackChange `json:"history,omitempty"`

	// clusters counts the Clusters this stack selects.
	// +optional
	Clusters *ClusterCounts `json:"clusters,omitempty"`

	// rollout says how far the rollout is. It isn't there without spec.rollout.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// following says which version is taken of each add-on whose version is a range,
	// and of spec.source, if that follows versions. At most 65.
	// +optional
	// +listType=map
	// +listMapKey=addon
	// +kubebuilder:validation:MaxItems=65
	Following []FollowedVersion `json:"following,omitempty"`

	// sources says of each add-on, and of spec.source, where it comes from, and
	// whether it can be had there. If a stack is meant for the Clusters of all
	// filters, the SourcesReady conditions in instances say it. At most 65.
	// +optional
	// +listType=map
	// +listMapKey=addon
	// +kubebuilder:validation:MaxItems=65
	Sources []StackSource `json:"sources,omitempty"`

	// instances are there if the stack is meant for the Clusters of all filters
	// (label cluster.x-k8s.io/watch-filter: shared). Each instance that has Clusters
	// in the namespace says what it sees. The rest of the status sums them up. At
	// most 64.
	// +optional
	// +listType=map
	// +listMapKey=watchFilter
	// +kubebuilder:validation:MaxItems=64
	Instances []StackInstance `json:"instances,omitempty"`
}

// FollowedSource is the name that spec.source has in status.following. It can't be
// that of an add-on.
const FollowedSource = "spec.source"

// FollowedVersion is the version of an add-on that was found within its range.
type FollowedVersion struct {
	// addon is the add-on's name, or "spec.source" for the stack's bundle.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	Addon string `json:"addon"`

	// version that the newest revision has of it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`

	// since is when this version was taken.
	// +required
	Since metav1.Time `json:"since,omitempty,omitzero"`

	// available is a newer version that would be taken, if updates were not
	// suspended, or if it could be used: then SourcesReady says why it can't.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Available string `json:"available,omitempty"`
}

// StackSource is where an add-on comes from, and whether it can be had there.
type StackSource struct {
	// addon is the add-on's name, or "spec.source" for the stack's bundle.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	Addon string `json:"addon"`

	// address that the newest revision has of it, as in
	// "oci://registry.example.org/charts/cilium:1.17.4"; or the spec, while that waits
	// for its sources.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Address string `json:"address"`

	// conditions: Available says whether the source gave what it was asked for. It is
	// False with the source's reason for as long as a cluster, or the stack itself,
	// fails to get it. Clusters that have it already don't ask, and stay as they are.
	// Available is Unknown with reason NotAsked while no cluster has asked. At most
	// 8.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
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

	// rollout is how far the instance's Clusters are, if the stack has spec.rollout.
	// +optional
	Rollout *RolloutProgress `json:"rollout,omitempty"`

	// conditions: Valid, Paused, SourcesReady, ClustersReady and RolledOut, as this instance sees
	// them. At most 8.
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

	// updated is the number of Clusters that are to have the revision that is rolled out. It isn't there without
	// spec.rollout.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Updated *int32 `json:"updated,omitempty"`

	// unstarted is the number of Clusters that have no revision of the stack, as their turn hasn't come. It isn't there
	// without spec.rollout.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Unstarted *int32 `json:"unstarted,omitempty"`

	// ready is the number of Clusters on which all of this stack's add-ons are
	// ready, at the newest revision. With spec.rollout it is the revision that each Cluster
	// is to have now.
	// +required
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready"`

	// failed is the number of Clusters on which one of this stack's add-ons failed, or
	// waits for a source that has answered that it doesn't give what is wanted.
	// +required
	// +kubebuilder:validation:Minimum=0
	Failed int32 `json:"failed"`

	// waiting is the number of Clusters on which nothing can be done now. Their control planes aren't up, they are
	// paused, being deleted, or can't be reached, or their release records can't be read.
	// +required
	// +kubebuilder:validation:Minimum=0
	Waiting int32 `json:"waiting"`
}
