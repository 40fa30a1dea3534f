// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ValuesTemplateMode says how a values template treats a missing field.
// +kubebuilder:validation:Enum=Strict;Lenient;ClusterStack
type ValuesTemplateMode string

const (
	// ValuesTemplateModeStrict fails on a missing field.
	ValuesTemplateModeStrict ValuesTemplateMode = "Strict"
	// ValuesTemplateModeLenient writes "<no value>" for a missing field.
	ValuesTemplateModeLenient ValuesTemplateMode = "Lenient"
	// ValuesTemplateModeClusterStack is for templates of Cluster Stacks.
	ValuesTemplateModeClusterStack ValuesTemplateMode = "ClusterStack"
)

// AdoptionPolicy says how to treat an object that exists and isn't ours.
// +kubebuilder:validation:Enum=Fail;Adopt;AdoptIfEqual
type AdoptionPolicy string

const (
	// AdoptionPolicyFail leaves the object alone.
	AdoptionPolicyFail AdoptionPolicy = "Fail"
	// AdoptionPolicyAdopt takes the object over and changes it.
	AdoptionPolicyAdopt AdoptionPolicy = "Adopt"
	// AdoptionPolicyAdoptIfEqual takes the object over if nothing would change.
	AdoptionPolicyAdoptIfEqual AdoptionPolicy = "AdoptIfEqual"
)

// FailurePolicy says what happens when an upgrade fails.
// +kubebuilder:validation:Enum=Retry;RollBack
type FailurePolicy string

const (
	// FailurePolicyRetry tries the upgrade again.
	FailurePolicyRetry FailurePolicy = "Retry"
	// FailurePolicyRollBack installs what was deployed before.
	FailurePolicyRollBack FailurePolicy = "RollBack"
)

// GeneratedValuesPolicy says what becomes of generated values that can't be taken over.
// +kubebuilder:validation:Enum=Keep;Renew
type GeneratedValuesPolicy string

const (
	// GeneratedValuesPolicyKeep refuses to make them again.
	GeneratedValuesPolicyKeep GeneratedValuesPolicy = "Keep"
	// GeneratedValuesPolicyRenew makes them again.
	GeneratedValuesPolicyRenew GeneratedValuesPolicy = "Renew"
)

// PrunePolicy says when an upgrade deletes the objects that the new revision doesn't have.
// +kubebuilder:validation:Enum=AfterReady;BeforeReady
type PrunePolicy string

const (
	// PrunePolicyAfterReady deletes them once all objects of the new revision are ready.
	PrunePolicyAfterReady PrunePolicy = "AfterReady"
	// PrunePolicyBeforeReady deletes them once all objects of the new revision are applied.
	PrunePolicyBeforeReady PrunePolicy = "BeforeReady"
)

// ImmutableFieldPolicy says what happens when a field is to change that can't be changed.
// +kubebuilder:validation:Enum=Fail;Recreate
type ImmutableFieldPolicy string

const (
	// ImmutableFieldPolicyFail leaves the object.
	ImmutableFieldPolicyFail ImmutableFieldPolicy = "Fail"
	// ImmutableFieldPolicyRecreate deletes the object and makes it again.
	ImmutableFieldPolicyRecreate ImmutableFieldPolicy = "Recreate"
)

// CRDPolicy says what happens with the CustomResourceDefinitions of crds/.
// +kubebuilder:validation:Enum=Create;CreateReplace;Skip
type CRDPolicy string

const (
	// CRDPolicyCreate makes those that are missing.
	CRDPolicyCreate CRDPolicy = "Create"
	// CRDPolicyCreateReplace applies them with each revision.
	CRDPolicyCreateReplace CRDPolicy = "CreateReplace"
	// CRDPolicySkip leaves them to others.
	CRDPolicySkip CRDPolicy = "Skip"
)

// DataPolicy says what becomes of objects that hold data of people.
// +kubebuilder:validation:Enum=Keep;Delete
type DataPolicy string

const (
	// DataPolicyKeep leaves them in the cluster.
	DataPolicyKeep DataPolicy = "Keep"
	// DataPolicyDelete deletes them with the rest.
	DataPolicyDelete DataPolicy = "Delete"
)
