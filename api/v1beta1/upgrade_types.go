// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterUpgrade is an upgrade of a cluster's Kubernetes that is wanted, or isn't done.
type ClusterUpgrade struct {
	// from is the version that the control plane ran when the upgrade was first seen, as in
	// "v1.35.2".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	From string `json:"from"`

	// step is the version that the control plane is to run next. It is target, or a minor
	// version between.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Step string `json:"step"`

	// target is the version that the whole cluster is to run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Target string `json:"target"`

	// since is when the upgrade was first seen.
	// +required
	Since metav1.Time `json:"since"`

	// observedClusterGeneration is the metadata.generation of the Cluster that this is about.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedClusterGeneration int64 `json:"observedClusterGeneration,omitempty"`

	// gates are where the upgrade is now: at most one for each point.
	// +optional
	// +listType=map
	// +listMapKey=point
	// +kubebuilder:validation:MaxItems=3
	Gates []UpgradeGate `json:"gates,omitempty"`
}

// UpgradeGate says whether an upgrade may go on at a point.
type UpgradeGate struct {
	// point of the upgrade.
	// +required
	Point UpgradePoint `json:"point"`

	// version is that of Kubernetes which the point is about: the one that the control plane is
	// to run next, runs by now, or that the workers run by now.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version"`

	// state says whether the upgrade may go on.
	// +required
	State GateState `json:"state"`

	// reason is one word for the state.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// message says what the upgrade waits for, and the way out.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// since is when the upgrade came to this point.
	// +required
	Since metav1.Time `json:"since"`

	// deadline is when the upgrade continues without what it waits for. Absent: never, or it
	// doesn't wait.
	// +optional
	Deadline metav1.Time `json:"deadline,omitempty,omitzero"`
}

// GateState says whether an upgrade may go on.
// +kubebuilder:validation:Enum=Open;Waiting;Closed;Expired;Skipped;Passed
type GateState string

const (
	// GateOpen lets the upgrade go on: nothing is left to do.
	GateOpen GateState = "Open"
	// GateWaiting holds it for what comes by itself.
	GateWaiting GateState = "Waiting"
	// GateClosed holds it until somebody changes an add-on.
	GateClosed GateState = "Closed"
	// GateExpired lets it go on, as it was held long enough.
	GateExpired GateState = "Expired"
	// GateSkipped lets it go on, as the annotation skip-gates says.
	GateSkipped GateState = "Skipped"
	// GatePassed held the upgrade, which went on all the same: nothing asked.
	GatePassed GateState = "Passed"
)

// IsOpen reports whether the upgrade may go on.
func (g GateState) IsOpen() bool { return g != GateWaiting && g != GateClosed }

// ClusterDeletion says whether the deletion of a Cluster may go on.
type ClusterDeletion struct {
	// state is Open once all add-ons are removed that are to be, Waiting before that, and Expired
	// if the deletion continues without.
	// +required
	State GateState `json:"state"`

	// message names the add-ons that aren't removed yet.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// since is when the deletion was first seen.
	// +required
	Since metav1.Time `json:"since"`

	// deadline is when the deletion continues without what it waits for. Absent: never, or it
	// doesn't wait.
	// +optional
	Deadline metav1.Time `json:"deadline,omitempty,omitzero"`
}
