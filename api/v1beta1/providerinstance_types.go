// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScopeClaim says whether an instance asks for its scope.
// +kubebuilder:validation:Enum=Waiting;Claiming
type ScopeClaim string

const (
	// ScopeWaiting asks for nothing: something that the instance needs isn't there yet, or the
	// instance is ending. A holder that was granted its scope, and waits again, has given it up for good.
	ScopeWaiting ScopeClaim = "Waiting"
	// ScopeClaiming asks for the scope. The answer is in status.grant.
	ScopeClaiming ScopeClaim = "Claiming"
)

// ProviderInstanceSpec is what a running instance says of itself.
// +kubebuilder:validation:XValidation:rule=`self.holder != oldSelf.holder || (self.expirySeconds == oldSelf.expirySeconds && (has(self.leaseName) ? self.leaseName : "") == (has(oldSelf.leaseName) ? oldSelf.leaseName : "") && (has(self.watchFilter) ? self.watchFilter : "") == (has(oldSelf.watchFilter) ? oldSelf.watchFilter : "") && (has(self.namespaces) ? self.namespaces : []) == (has(oldSelf.namespaces) ? oldSelf.namespaces : []))`,message="namespaces, watchFilter, leaseName and expirySeconds are fixed for a holder: give the process that has others another holder"
type ProviderInstanceSpec struct {
	// namespaces that the instance manages (--namespace). Empty means all.
	// At most 256.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces,omitempty"`

	// watchFilter is the value of label cluster.x-k8s.io/watch-filter that objects
	// must have to be managed (--watch-filter). Empty means that the label
	// doesn't matter. "shared" is for AddonStacks of all instances, and not possible.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'shared'",message="shared is the label of AddonStacks that are meant for all instances: choose another watch filter"
	WatchFilter string `json:"watchFilter,omitempty"`

	// version of the program.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`

	// apiVersions of group addons.cluster.x-k8s.io that the program reads and
	// writes. From 1 to 8.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	APIVersions []string `json:"apiVersions"`

	// holder is the process that writes this object: host name and a random part.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Holder string `json:"holder"`

	// leaseName is the Lease of this namespace that the holder was elected by.
	// Whoever is elected by it next is the same instance, and continues with this
	// object at once. Empty without leader election: then the heartbeat has to
	// expire first.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	LeaseName string `json:"leaseName,omitempty"`

	// claim says whether the instance asks for its scope. It runs controllers only while
	// status.grant says that its holder was granted the scope.
	// +required
	Claim ScopeClaim `json:"claim"`

	// expirySeconds is how long after its last heartbeat the instance counts as
	// gone; its own process has ended before that. From 4 to 300.
	// +required
	// +kubebuilder:validation:Minimum=4
	// +kubebuilder:validation:Maximum=300
	ExpirySeconds int32 `json:"expirySeconds"`

	// drain says that the instance is to end (--drain): the assigner gives its Clusters to other instances, and none to it. Absent
	// if it isn't.
	// +optional
	Drain *bool `json:"drain,omitempty"`
}

// ProviderInstanceStatus is how a running instance fares.
// +kubebuilder:validation:MinProperties=1
type ProviderInstanceStatus struct {
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

	// scope is spec.namespaces in one word, as in "team-a,team-b", or "*" for all.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Scope string `json:"scope,omitempty"`

	// heartbeatTime is when the holder last said that it is alive.
	// +optional
	HeartbeatTime metav1.MicroTime `json:"heartbeatTime,omitempty,omitzero"`

	// grant is the answer of the shared deployment to the claim. Only that deployment writes it.
	// +optional
	Grant *ScopeGrant `json:"grant,omitempty"`

	// clusters counts the Clusters in the instance's care.
	// +optional
	Clusters *InstanceClusters `json:"clusters,omitempty"`

	// unmanagedClusters is the number of Clusters in the instance's namespaces that no instance manages, as their
	// watch filter is that of none. Only the shared deployment writes it, once a minute. Absent if there are none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	UnmanagedClusters int32 `json:"unmanagedClusters,omitempty"`

	// sandbox is what keeps the processes that render charts from doing anything else. "Seccomp": the
	// kernel refuses them other system calls. "Limits": it can't, and only limits of resources hold.
	// Absent if the instance doesn't say it.
	// +optional
	Sandbox InstanceSandbox `json:"sandbox,omitempty"`
}

// GrantState is the answer to a claim.
// +kubebuilder:validation:Enum=Reserved;Granted;Refused;Expired
type GrantState string

const (
	// GrantReserved keeps others from the scope, while the shared deployment looks once more whether it is free.
	GrantReserved GrantState = "Reserved"
	// GrantGranted gives the scope to the holder, until it gives it up or expires.
	GrantGranted GrantState = "Granted"
	// GrantRefused says that another instance has a part of the scope.
	GrantRefused GrantState = "Refused"
	// GrantExpired has taken the scope from a holder that was silent.
	GrantExpired GrantState = "Expired"
)

// ScopeGrant is the answer of the shared deployment to a claim.
type ScopeGrant struct {
	// holder is the spec.holder whose claim is answered.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Holder string `json:"holder"`

	// state is "Reserved" for a moment, then "Granted" or "Refused". It becomes "Expired" when the
	// holder was silent for spec.expirySeconds.
	// +required
	State GrantState `json:"state"`

	// message names the instance that has a part of the scope, and the way out.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}

// InstanceSandbox is what keeps the processes that render charts from doing anything else.
// +kubebuilder:validation:Enum=Seccomp;Limits
type InstanceSandbox string

const (
	// SandboxSeccomp has a filter of system calls, beside limits of resources.
	SandboxSeccomp InstanceSandbox = "Seccomp"
	// SandboxLimits has limits of resources alone.
	SandboxLimits InstanceSandbox = "Limits"
)

// InstanceClusters counts Clusters in an instance's care.
type InstanceClusters struct {
	// total is the number of Clusters.
	// +required
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"`

	// ready is the number of Clusters whose ClusterAddon is Ready.
	// +required
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready"`
}

// ProviderInstance is a running instance of Chandler, in the namespace it runs in.
// The instance makes and deletes it; people only read it.
//
// +kubebuilder:validation:XValidation:rule="self.spec.holder == oldSelf.spec.holder || oldSelf.spec.claim == 'Waiting' || (has(self.spec.leaseName) && has(oldSelf.spec.leaseName) && self.spec.leaseName == oldSelf.spec.leaseName) || (has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'Ready' && c.reason == 'HeartbeatExpired'))",message="the process of spec.holder is alive and writes the ProviderInstance of this name: give one of both another --instance-name, or another namespace to run in",fieldPath=".spec.holder"
// +kubebuilder:validation:XValidation:rule="self.spec.claim == 'Waiting' || oldSelf.spec.claim != 'Waiting' || self.spec.holder != oldSelf.spec.holder || !has(oldSelf.status) || !has(oldSelf.status.grant) || oldSelf.status.grant.holder != self.spec.holder",message="this holder has given up its scope: only another holder can claim it",fieldPath=".spec.claim"
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=providerinstances,scope=Namespaced,shortName=pi,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.status.scope`,description="Namespaces managed, * for all"
// +kubebuilder:printcolumn:name="Filter",type=string,JSONPath=`.spec.watchFilter`,description="Watch label that objects must have"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusters.total`,description="Clusters managed"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.clusters.ready`,description="Clusters on which all add-ons are ready"
// +kubebuilder:printcolumn:name="Unmanaged",type=integer,JSONPath=`.status.unmanagedClusters`,description="Clusters in its namespaces that no instance manages"
// +kubebuilder:printcolumn:name="OK",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="The Ready condition"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="API",type=string,JSONPath=`.spec.apiVersions`,priority=10
// +kubebuilder:printcolumn:name="Heartbeat",type=date,JSONPath=`.status.heartbeatTime`,priority=10
// +kubebuilder:printcolumn:name="Holder",type=string,JSONPath=`.spec.holder`,priority=10
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="What is wrong, if anything is"
type ProviderInstance struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the instance says of itself.
	// +required
	Spec ProviderInstanceSpec `json:"spec"`

	// status is how the instance fares.
	// +optional
	Status ProviderInstanceStatus `json:"status,omitempty,omitzero"`
}

// HoldsScope reports whether the holder was granted its scope.
func (p *ProviderInstance) HoldsScope() bool {
	g := p.Status.Grant
	return p.Spec.Claim == ScopeClaiming && g != nil && g.State == GrantGranted && g.Holder == p.Spec.Holder
}

// GetConditions returns the conditions, as Cluster API's condition library asks for.
func (p *ProviderInstance) GetConditions() []metav1.Condition { return p.Status.Conditions }

// SetConditions sets the conditions.
func (p *ProviderInstance) SetConditions(conditions []metav1.Condition) {
	p.Status.Conditions = conditions
}

// ProviderInstanceList is a list of ProviderInstances.
//
// +kubebuilder:object:root=true
type ProviderInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ProviderInstance `json:"items"`
}
