// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxHistory is how many changes a status has.
const MaxHistory = 10

// ChangeCause says why something changed.
// +kubebuilder:validation:Enum=Edited;Followed;Back;Values;Kubernetes;Renewed;Retried;RolledBack;Repaired;Installed;Removed
type ChangeCause string

const (
	// ChangeEdited: the AddonStack was edited.
	ChangeEdited ChangeCause = "Edited"
	// ChangeFollowed: there was a newer version of what is followed.
	ChangeFollowed ChangeCause = "Followed"
	// ChangeBack: the AddonStack went back to a revision that it had before, or the cluster did.
	ChangeBack ChangeCause = "Back"
	// ChangeValues: values in ConfigMaps or Secrets changed, or for a cluster also labels or templates.
	ChangeValues ChangeCause = "Values"
	// ChangeKubernetes: the cluster's version of Kubernetes, or another fact about it, changed.
	ChangeKubernetes ChangeCause = "Kubernetes"
	// ChangeRenewed: a generated certificate was to be renewed.
	ChangeRenewed ChangeCause = "Renewed"
	// ChangeRetried: the same was installed again, as after a failure, or since the release record was changed.
	ChangeRetried ChangeCause = "Retried"
	// ChangeRolledBack: an upgrade failed.
	ChangeRolledBack ChangeCause = "RolledBack"
	// ChangeRepaired: others had changed objects of the add-on.
	ChangeRepaired ChangeCause = "Repaired"
	// ChangeInstalled: the add-on wasn't there before.
	ChangeInstalled ChangeCause = "Installed"
	// ChangeRemoved: the add-on was uninstalled, or left to itself.
	ChangeRemoved ChangeCause = "Removed"
)

// StackChange is a change of an AddonStack. It is for people: nothing is decided by it.
type StackChange struct {
	// time of the change.
	// +required
	Time metav1.Time `json:"time,omitempty,omitzero"`

	// cause says why the stack changed: Edited, Followed, Back or Values.
	// +required
	Cause ChangeCause `json:"cause"`

	// by is who edited the stack: the field manager of its spec, and the object that Flux or Argo CD applied it for.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	By string `json:"by,omitempty"`

	// from is the name of the ControllerRevision that was the newest before. It isn't there if there was none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	From string `json:"from,omitempty"`

	// to is the name of the ControllerRevision that was the newest from then on.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	To string `json:"to"`

	// versions are the first versions that changed, as in "web 1.0.0 -> 1.1.0, dns none -> 2.0.0".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Versions string `json:"versions,omitempty"`
}

// AddonChange is a change of an add-on on one cluster. It is for people: nothing is decided by it.
type AddonChange struct {
	// time of the change: when its objects were about to be applied, or were repaired or removed.
	// +required
	Time metav1.Time `json:"time,omitempty,omitzero"`

	// addon is the add-on's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	Addon string `json:"addon"`

	// namespace of its release.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// stack is the name of the AddonStack that the add-on is from.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Stack string `json:"stack"`

	// cause says why the add-on changed.
	// +required
	Cause ChangeCause `json:"cause"`

	// by are the field managers that had changed objects, if the cause is Repaired and they are known.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	By string `json:"by,omitempty"`

	// from is the version of the chart before, left out if there was none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	From string `json:"from,omitempty"`

	// to is the version of the chart from then on, left out if there is none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	To string `json:"to,omitempty"`

	// revision of the Helm release from then on; of a removed add-on, the last one.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Revision int32 `json:"revision,omitempty"`
}
