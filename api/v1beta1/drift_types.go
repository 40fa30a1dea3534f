// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DriftPolicy says what happens when others change or delete objects of an add-on.
// +kubebuilder:validation:Enum=Correct;Report;Ignore
type DriftPolicy string

const (
	// DriftPolicyCorrect sets the changed fields back, and makes deleted objects again.
	DriftPolicyCorrect DriftPolicy = "Correct"
	// DriftPolicyReport tells of changes, and leaves them.
	DriftPolicyReport DriftPolicy = "Report"
	// DriftPolicyIgnore doesn't look for changes.
	DriftPolicyIgnore DriftPolicy = "Ignore"
)

// Drift says what happens when others change or delete objects of an add-on in a workload
// cluster.
// +kubebuilder:validation:MinProperties=1
type Drift struct {
	// policy is Correct to set changed fields back and to make deleted objects again,
	// Report to tell of it in status.addons[].drift and by an event, or Ignore not to
	// look. Fields that the add-on doesn't set are never touched. It
	// defaults to the policy of the add-on's stack; for a stack, to Correct.
	// +optional
	Policy DriftPolicy `json:"policy,omitempty"`

	// ignore are changes that stay as others made them: they are neither set back nor
	// reported. An upgrade keeps those of fields that another manager owns. The rules of an add-on and those of its
	// stack hold together. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Ignore []DriftIgnoreRule `json:"ignore,omitempty"`
}

// DriftIgnoreRule selects changes by where they are and who made them. A field that is left
// out isn't asked for: a rule with kind alone is for all changes of objects of that kind.
// +kubebuilder:validation:MinProperties=1
type DriftIgnoreRule struct {
	// group is the API group of the objects, as in "apps"; "" is the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group *string `json:"group,omitempty"`

	// kind of the objects, as in "Deployment".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// name of the object.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// paths are JSON pointers (RFC 6901) to fields, with all that is below them, as in
	// /spec/replicas or /webhooks/*/clientConfig/caBundle: "*" is any item of a list.
	// At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^/`
	Paths []string `json:"paths,omitempty"`

	// managers are field managers, as metadata.managedFields names them. The change is
	// left if one of them owns the field. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	Managers []string `json:"managers,omitempty"`
}

// AddonDrift is what others changed of an add-on's objects.
type AddonDrift struct {
	// objects is how many objects differ from what was installed: by the policy Report,
	// because somebody changes them again each time, or because they can't be repaired.
	// +required
	// +kubebuilder:validation:Minimum=0
	Objects int32 `json:"objects"`

	// repaired is how many times objects were set right.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Repaired int64 `json:"repaired,omitempty"`

	// lastTime is when a change was last seen.
	// +optional
	LastTime metav1.Time `json:"lastTime,omitempty,omitzero"`

	// lastManagers are the field managers that made the change, as far as that is known:
	// nobody is on record for a deletion.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=128
	LastManagers []string `json:"lastManagers,omitempty"`

	// unwatched names kinds that can't be watched, and why. Their objects are looked at
	// every ten minutes.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Unwatched string `json:"unwatched,omitempty"`

	// message names the objects, the fields and the managers.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}
