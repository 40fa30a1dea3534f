// SPDX-License-Identifier: Apache-2.0

package v1beta1

// SkipGatesAnnotation on a Cluster lets it go to one version of Kubernetes, such as "v1.36.1",
// that its add-ons aren't for. It has no effect on any other version.
const SkipGatesAnnotation = "addons.cluster.x-k8s.io/skip-gates"

// AddonLifecycle says how an add-on goes along with its cluster's Kubernetes.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.present) || self.present == 'Always' || !has(self.upgrade)",message="set present or upgrade: what is there only for upgrades has no point at which its changes are delivered"
type AddonLifecycle struct {
	// kubernetesVersions is the range of Kubernetes versions that the add-on is for, as in
	// ">=1.33 <1.37". On a cluster of another version it is neither installed nor upgraded;
	// what is installed stays. A Cluster's spec.topology.version beyond it is refused. Only
	// numbers count: v1.34.2-eks-1 is 1.34.2. Defaults to all versions; kubeVersion of
	// Chart.yaml counts as well.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9vxX*.<>=!~^|, -]+$')",message="kubernetesVersions is a range of versions, as in 1.34.x or >=1.34 <1.36"
	KubernetesVersions string `json:"kubernetesVersions,omitempty"`

	// upgrade is the point of an upgrade of the cluster's Kubernetes at which changes of the
	// add-on are delivered. Defaults to Independent.
	// +optional
	Upgrade UpgradePoint `json:"upgrade,omitempty"`

	// present says when the add-on is there. The default is Always. With BeforeUpgrade it is
	// there from when an upgrade of the cluster's Kubernetes is wanted until the control plane
	// changes. With DuringUpgrade it is there from when one is wanted until the upgrade is
	// done. The control plane is upgraded once an add-on of BeforeUpgrade is Ready.
	// +optional
	Present Present `json:"present,omitempty"`

	// onClusterDelete says what becomes of the add-on when its Cluster is deleted: Leave (the
	// default) does nothing, Remove uninstalls it, and what depends on it, before the
	// Cluster's machines go. It takes a Cluster with a topology, and Cluster API's runtime hooks.
	// With deletionPolicy Orphan nothing is uninstalled.
	// +optional
	OnClusterDelete OnClusterDelete `json:"onClusterDelete,omitempty"`
}

// Present says when an add-on is there.
// +kubebuilder:validation:Enum=Always;BeforeUpgrade;DuringUpgrade
type Present string

const (
	// PresentAlways has the add-on installed at all times.
	PresentAlways Present = "Always"
	// PresentBeforeUpgrade has it installed until the control plane changes.
	PresentBeforeUpgrade Present = "BeforeUpgrade"
	// PresentDuringUpgrade has it installed until the upgrade is done.
	PresentDuringUpgrade Present = "DuringUpgrade"
)

// OnClusterDelete says what becomes of an add-on when its Cluster is deleted.
// +kubebuilder:validation:Enum=Leave;Remove
type OnClusterDelete string

const (
	// OnClusterDeleteLeave leaves the add-on as it is.
	OnClusterDeleteLeave OnClusterDelete = "Leave"
	// OnClusterDeleteRemove uninstalls it first.
	OnClusterDeleteRemove OnClusterDelete = "Remove"
)

// UpgradePoint is a point of an upgrade of Kubernetes.
// +kubebuilder:validation:Enum=BeforeControlPlane;AfterControlPlane;AfterWorkers;Independent
type UpgradePoint string

const (
	// UpgradeBeforeControlPlane delivers changes at once. The control plane is upgraded once the
	// add-on is Ready, in a version that is for what runs and for what is next.
	UpgradeBeforeControlPlane UpgradePoint = "BeforeControlPlane"
	// UpgradeAfterControlPlane delivers changes once the control plane is upgraded. The workers
	// are upgraded once the add-on is Ready.
	UpgradeAfterControlPlane UpgradePoint = "AfterControlPlane"
	// UpgradeAfterWorkers delivers changes once all workers are upgraded. The next upgrade begins
	// once the add-on is Ready.
	UpgradeAfterWorkers UpgradePoint = "AfterWorkers"
	// UpgradeIndependent delivers changes at once, and nothing waits for the add-on.
	UpgradeIndependent UpgradePoint = "Independent"
)

// StackLifecycle says how a stack's add-ons hold upgrades of Kubernetes.
//
// +kubebuilder:validation:MinProperties=1
type StackLifecycle struct {
	// holdSeconds is how long add-ons that aren't ready hold each point of an upgrade, and those
	// that are to be removed before it the deletion of a Cluster. Defaults to 3600. From 0,
	// which holds nothing, to 86400.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	HoldSeconds *int32 `json:"holdSeconds,omitempty"`

	// afterHold says what becomes of the upgrade, or the deletion, then: with Proceed (the default)
	// it continues, with Hold it waits until the add-ons are ready, or gone.
	// +optional
	AfterHold AfterHold `json:"afterHold,omitempty"`
}

// AfterHold says what becomes of an upgrade, or a deletion, that add-ons have held long enough.
// +kubebuilder:validation:Enum=Proceed;Hold
type AfterHold string

const (
	// AfterHoldProceed lets it go on.
	AfterHoldProceed AfterHold = "Proceed"
	// AfterHoldHold holds it until the add-ons are ready, or gone.
	AfterHoldHold AfterHold = "Hold"
)

// DefaultHoldSeconds is the default of spec.lifecycle.holdSeconds.
const DefaultHoldSeconds = 3600

// KubernetesVersions say for which versions of Kubernetes a cluster's add-ons are.
type KubernetesVersions struct {
	// ranges are those of all add-ons that have one.
	// +optional
	// +listType=atomic
	Ranges []KubernetesRange `json:"ranges,omitempty"`
}

// KubernetesRange is a range of Kubernetes versions that an add-on is for.
type KubernetesRange struct {
	// stack is the name of the AddonStack that the add-on is from.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Stack string `json:"stack"`

	// addon is the name of the add-on.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	Addon string `json:"addon"`

	// field that the range is from: "lifecycle.kubernetesVersions", "chart.versions", or
	// "kubeVersion" for the one in the Chart.yaml of what is installed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Field string `json:"field"`

	// versions is the range, as in ">=1.33 <1.37". The ranges of chart.versions are joined by "||".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Versions string `json:"versions"`
}
