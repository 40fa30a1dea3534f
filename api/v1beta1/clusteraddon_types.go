// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Kinds that spec.clusterKinds of an AddonStack and spec.clusterRef of a ClusterAddon may name.
const (
	// KindCluster is a Cluster of Cluster API.
	KindCluster = "Cluster"
	// KindClusterProfile is a ClusterProfile of the Cluster Inventory API.
	KindClusterProfile = "ClusterProfile"
	// KindSecret is a Secret that holds a kubeconfig.
	KindSecret = "Secret"
	// KindKubeconfigContext is a context of a kubeconfig file that an instance is given.
	KindKubeconfigContext = "KubeconfigContext"
	// KindManagementCluster is the cluster that an instance runs for.
	KindManagementCluster = "ManagementCluster"
)

// ClusterReference names what stands for a cluster, if that isn't a Cluster.
type ClusterReference struct {
	// apiGroup of the object; empty for a Secret, and for what isn't an object.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`

	// kind is ClusterProfile, Secret, KubeconfigContext or ManagementCluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// name of the object, in this object's namespace; of the context; or "local" for the
	// management cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ClusterAddonSpec says which revisions of which stacks a cluster is to run.
// Chandler writes it.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterRef) == has(oldSelf.clusterRef)",message="clusterRef is immutable"
// +kubebuilder:validation:XValidation:rule="!has(self.clusterRef) || self.clusterRef.name == self.clusterName",message="clusterName is the name in clusterRef"
type ClusterAddonSpec struct {
	// clusterName is the name of the Cluster, in this object's namespace; with clusterRef, of what
	// that names. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterName is immutable"
	ClusterName string `json:"clusterName"`

	// clusterRef names what stands for the cluster, if that isn't a Cluster. Immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterRef is immutable"
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`

	// stacks are the AddonStacks that select the Cluster, with the revision that
	// it is to run. At most 64.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Stacks []StackRevision `json:"stacks,omitempty"`
}

// StackRevision is an AddonStack at one of its revisions.
type StackRevision struct {
	// name of the AddonStack.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// revision is the name of the ControllerRevision. It is left out while the
	// stack has none, or its selector can't be read: then what is installed of the
	// stack stays as it is.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`

	// removalLimit is spec.removalLimit of the stack. It is kept here for when the
	// stack is gone.
	// +optional
	// +kubebuilder:validation:XIntOrString
	RemovalLimit *intstr.IntOrString `json:"removalLimit,omitempty"`

	// deletionPolicy is spec.deletionPolicy of the stack as it is written now, if that is Orphan. It is kept here
	// for when the stack is gone. The stack stays in this list until status.stacks[].recordedDeletionPolicy is Orphan.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// paused is true while the AddonStack has the annotation cluster.x-k8s.io/paused: nothing is written to the cluster
	// for the stack, and the stack stays in this list with its revision. Defaults to false.
	// +optional
	Paused *bool `json:"paused,omitempty"`

	// heldRemoval is there while a change would take add-ons of the stack away, and is
	// held because it concerns many clusters at once. Until it is confirmed, or undone,
	// the cluster stays at the revision that it has.
	// +optional
	HeldRemoval *HeldRemoval `json:"heldRemoval,omitempty"`

	// movedAddons are add-ons that move to another AddonStack, as "namespace/name": this one neither delivers nor
	// removes them on the cluster. At most 128.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=128
	MovedAddons []string `json:"movedAddons,omitempty"`
}

// StackStatus is an AddonStack as a status is about it.
type StackStatus struct {
	// name of the AddonStack.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// revision is the name of the ControllerRevision that the cluster was last brought to, as far as it goes; left
	// out if there was none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`

	// state says where the stack's add-ons stand on the cluster, as they were last seen. Conditions say whether
	// the cluster is paused, or can't be reached, since then.
	// +optional
	State StackState `json:"state,omitempty"`

	// since is when the stack got this state at this revision.
	// +optional
	Since metav1.Time `json:"since,omitempty,omitzero"`

	// started is when the cluster was first brought to this revision.
	// +optional
	Started metav1.Time `json:"started,omitempty,omitzero"`

	// recordedDeletionPolicy is Orphan once each release record of the stack's add-ons in the workload cluster was seen
	// with that policy. It isn't there otherwise.
	// +optional
	RecordedDeletionPolicy DeletionPolicy `json:"recordedDeletionPolicy,omitempty"`

	// wasReady says whether the stack was Ready when the cluster left the revision before. It isn't there if there was
	// none.
	// +optional
	WasReady *bool `json:"wasReady,omitempty"`

	// inputsChanged is since when the cluster gets inputs that no revision of the stack has, as other labels
	// that a template reads. It is left out once the stack is Ready with these.
	// +optional
	InputsChanged metav1.Time `json:"inputsChanged,omitempty,omitzero"`

	// previous is the name of the ControllerRevision at which the stack was Ready last, before this one. The cluster goes
	// back to it if this one is rejected.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Previous string `json:"previous,omitempty"`
}

// StackState says where the add-ons of a stack stand on a cluster.
// +kubebuilder:validation:Enum=Unknown;Pending;Progressing;Ready;Degraded;Failed
type StackState string

const (
	// StackUnknown says that the stack has no revision that can be read, or no longer selects the Cluster.
	StackUnknown StackState = "Unknown"
	// StackPending says that an add-on waits, and nothing is being done about the others.
	StackPending StackState = "Pending"
	// StackProgressing says that an add-on is being installed, upgraded or removed.
	StackProgressing StackState = "Progressing"
	// StackReady says that all add-ons are Ready.
	StackReady StackState = "Ready"
	// StackDegraded says that an add-on is Degraded.
	StackDegraded StackState = "Degraded"
	// StackFailed says that an add-on is Failed.
	StackFailed StackState = "Failed"
)

// RemovalCause says which kind of change would take add-ons away.
// +kubebuilder:validation:Enum=StackDeleted;NotSelected;AddonsDropped
type RemovalCause string

const (
	// RemovalStackDeleted says that the AddonStack is gone.
	RemovalStackDeleted RemovalCause = "StackDeleted"
	// RemovalNotSelected says that the AddonStack doesn't select the Cluster any more.
	RemovalNotSelected RemovalCause = "NotSelected"
	// RemovalAddonsDropped says that the AddonStack doesn't have the add-ons any more.
	RemovalAddonsDropped RemovalCause = "AddonsDropped"
)

// HeldRemoval is a change that would take add-ons away, and that waits for confirmation.
type HeldRemoval struct {
	// cause is the kind of the change.
	// +required
	Cause RemovalCause `json:"cause"`

	// confirmation identifies the change. As value of the annotation
	// addons.cluster.x-k8s.io/confirm-removal on this ClusterAddon it lets this change
	// through, and no other one.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Confirmation string `json:"confirmation"`

	// addons that would go, as "namespace/name". At most 64.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=128
	Addons []string `json:"addons"`
}

// ClusterAddonStatus is what Chandler saw in the workload cluster.
// +kubebuilder:validation:MinProperties=1
type ClusterAddonStatus struct {
	// conditions: Ready sums up all others.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the metadata.generation this status is about.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// observedUID is the metadata.uid of the ClusterAddon that this status is about. In a
	// status that came from a backup it is another one: then addons doesn't say what this
	// ClusterAddon has run.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	ObservedUID types.UID `json:"observedUID,omitempty"`

	// clusterUID is the metadata.uid of the workload cluster's namespace kube-system, if the kubeconfig
	// may read that. Nothing is done on another cluster while add-ons are installed on this one.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	ClusterUID types.UID `json:"clusterUID,omitempty"`

	// lastReconcileNow is the last value of the annotation
	// addons.cluster.x-k8s.io/reconcile-now that was acted on.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastReconcileNow string `json:"lastReconcileNow,omitempty"`

	// readyAddons is "ready/all", as in "2/3".
	// +optional
	// +kubebuilder:validation:MaxLength=16
	ReadyAddons string `json:"readyAddons,omitempty"`

	// stackNames are the first three assigned AddonStacks, as in "base,platform".
	// +optional
	// +kubebuilder:validation:MaxLength=256
	StackNames string `json:"stackNames,omitempty"`

	// driftedObjects is the number of objects that differ from what was installed: the sum of
	// addons[].drift.objects.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DriftedObjects int64 `json:"driftedObjects,omitempty"`

	// kubernetesVersions say for which versions of Kubernetes the add-ons are. Absent if they
	// are for all.
	// +optional
	KubernetesVersions *KubernetesVersions `json:"kubernetesVersions,omitempty"`

	// gatesUpgrades says that an add-on has a say in upgrades of the cluster's Kubernetes: by
	// lifecycle or by chart.versions. Then upgrade is there during each one.
	// +optional
	GatesUpgrades *bool `json:"gatesUpgrades,omitempty"`

	// upgrade is there while an upgrade of the cluster's Kubernetes is wanted, or isn't done.
	// +optional
	Upgrade *ClusterUpgrade `json:"upgrade,omitempty"`

	// gatesDeletion says that add-ons are removed before the Cluster is deleted. Then deletion is
	// there while that is done.
	// +optional
	GatesDeletion *bool `json:"gatesDeletion,omitempty"`

	// deletion is there once the Cluster is being deleted, and add-ons are removed before that.
	// +optional
	Deletion *ClusterDeletion `json:"deletion,omitempty"`

	// stacks are the assigned AddonStacks, each at the revision that this status is about.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Stacks []StackStatus `json:"stacks,omitempty"`

	// addons are the cluster's add-ons, also those that are being removed.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +listMapKey=stack
	// +kubebuilder:validation:MaxItems=4096
	Addons []AddonStatus `json:"addons,omitempty"`

	// history has the last ten changes of add-ons, the newest first. It is for people: nothing is decided by it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []AddonChange `json:"history,omitempty"`
}

// AddonPhase says where an add-on stands.
// +kubebuilder:validation:Enum=Pending;Installing;Upgrading;Ready;Degraded;Failed;Removing;Unassigned
type AddonPhase string

const (
	// AddonPending waits for something: a dependency, a values source, the cluster.
	AddonPending AddonPhase = "Pending"
	// AddonInstalling is being installed for the first time.
	AddonInstalling AddonPhase = "Installing"
	// AddonUpgrading is being brought from one revision to another.
	AddonUpgrading AddonPhase = "Upgrading"
	// AddonReady is installed as wanted, and its workloads are ready.
	AddonReady AddonPhase = "Ready"
	// AddonDegraded is installed as wanted, and a workload of it hasn't been ready for some time.
	AddonDegraded AddonPhase = "Degraded"
	// AddonFailed can't go on without a change, or is tried again with backoff.
	AddonFailed AddonPhase = "Failed"
	// AddonRemoving is being uninstalled.
	AddonRemoving AddonPhase = "Removing"
	// AddonUnassigned is installed, and not wanted by a stack as far as is known, and this
	// ClusterAddon has no reason to remove it, as after a restore from a backup. It is
	// left as it is.
	AddonUnassigned AddonPhase = "Unassigned"
)

// AddonStatus is the state of one add-on of a cluster.
type AddonStatus struct {
	// name of the add-on and of its Helm release.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	Name string `json:"name"`

	// namespace of the release.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// stack is the name of the AddonStack the add-on is from.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Stack string `json:"stack"`

	// phase says where the add-on stands.
	// +required
	Phase AddonPhase `json:"phase"`

	// reason is one word for why the add-on is in its phase.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// since is when the add-on got its phase and reason. It isn't there while nothing has changed since a version of
	// Chandler that didn't note it.
	// +optional
	Since metav1.Time `json:"since,omitempty,omitzero"`

	// message says what is going on, or what is wrong and the way out.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// version of the chart that is installed, or being installed.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// revision of the Helm release.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Revision int32 `json:"revision,omitempty"`

	// recordedRevision is the name of the stack's ControllerRevision that the release record names, of an add-on that
	// this ClusterAddon hasn't run. Whoever can write Secrets in the cluster can write another one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	RecordedRevision string `json:"recordedRevision,omitempty"`

	// recordDigest proves the add-on's release record in the workload cluster: it is the digest of what this
	// ClusterAddon wrote there last, as "sha256:" and 64 hex digits. A record with another one, or an add-on
	// without this field, is rendered again before anything is done by the record.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	RecordDigest string `json:"recordDigest,omitempty"`

	// objects counts the add-on's objects. It isn't there while none of them was applied.
	// +optional
	Objects *ObjectCounts `json:"objects,omitempty"`

	// serviceAccountName is spec.serviceAccountName of the stack. It is kept here for when
	// the stack is gone.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// drift is there once others changed or deleted objects of the add-on.
	// +optional
	Drift *AddonDrift `json:"drift,omitempty"`
}

// ObjectCounts counts the objects of an add-on.
type ObjectCounts struct {
	// total is the number of objects the add-on has.
	// +required
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"`

	// ready is the number of those that are applied and ready.
	// +required
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready"`
}

// ClusterAddon is what one cluster is to run, and what it runs. Chandler makes
// one for each Cluster, with the Cluster's name; people only read it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusteraddons,scope=Namespaced,shortName=ca,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Addons",type=string,JSONPath=`.status.readyAddons`,description="Add-ons that are ready, of all"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="The Ready condition"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="The Ready condition's reason"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Stacks",type=string,JSONPath=`.status.stackNames`,priority=10,description="The first AddonStacks that select the Cluster"
// +kubebuilder:printcolumn:name="Drift",type=integer,JSONPath=`.status.driftedObjects`,priority=10,description="Objects that differ from what was installed"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="What is wrong, if anything is"
// +kubebuilder:validation:XValidation:rule="self.metadata.name == (has(self.spec.clusterRef) ? self.spec.clusterName + '.' + self.spec.clusterRef.kind.lowerAscii() : self.spec.clusterName)",message="a ClusterAddon has the name of its Cluster, spec.clusterName; with spec.clusterRef that name, a dot, and the kind in lower case"
type ClusterAddon struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which revisions of which stacks the cluster is to run.
	// +required
	Spec ClusterAddonSpec `json:"spec"`

	// status is what Chandler saw in the workload cluster.
	// +optional
	Status ClusterAddonStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions, as Cluster API's condition library asks for.
func (c *ClusterAddon) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions sets the conditions.
func (c *ClusterAddon) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// ClusterAddonList is a list of ClusterAddons.
//
// +kubebuilder:object:root=true
type ClusterAddonList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterAddon `json:"items"`
}
