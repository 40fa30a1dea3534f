// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Condition types. True is good, unless said otherwise. Types and reasons are
// stable API.
const (
	// ReadyCondition sums up all other conditions of the object.
	ReadyCondition = "Ready"

	// PausedCondition is True while nothing is done, because the object or its
	// Cluster is paused. Negative polarity.
	PausedCondition = "Paused"

	// DeletingCondition is True while the object, or its Cluster, is being
	// deleted. Negative polarity.
	DeletingCondition = "Deleting"
)

// Conditions of an AddonStack.
const (
	// StalledCondition is True while a person has to act: the spec can't be used, an add-on failed, or a source has
	// answered that it doesn't give what is wanted. It has the
	// reason and message of Ready. It isn't there while nothing is wrong. Negative polarity.
	StalledCondition = "Stalled"

	// ValidCondition says whether the spec can be used. While it is False,
	// clusters stay on the revision they run.
	ValidCondition = "Valid"

	// SourcesReadyCondition says whether the sources give what they are asked for: the
	// newest versions, of what follows them, and what clusters are to get. It is Unknown
	// while the spec waits for a version: no revision holds it. While it is False,
	// clusters that have something keep it.
	SourcesReadyCondition = "SourcesReady"

	// SourceAvailableCondition is that of one source, in status.sources.
	SourceAvailableCondition = "Available"

	// ClustersReadyCondition says whether all matching clusters run this
	// stack's newest revision, and are ready. With spec.rollout it is about the revision that
	// each of them is to have now.
	ClustersReadyCondition = "ClustersReady"

	// RolledOutCondition says whether the newest revision has reached all clusters. Its reason is the phase of
	// status.rollout. It is there with spec.rollout only.
	RolledOutCondition = "RolledOut"
)

// Conditions of a ClusterAddon.
const (
	// ControlPlaneInitializedCondition says whether the Cluster's control plane
	// takes requests; before that nothing is done.
	ControlPlaneInitializedCondition = "ControlPlaneInitialized"

	// ClusterReachableCondition says whether the workload cluster answers.
	ClusterReachableCondition = "ClusterReachable"

	// AddonsReadyCondition says whether all add-ons are installed, at the
	// wanted version, and ready.
	AddonsReadyCondition = "AddonsReady"

	// UpgradeAllowedCondition says whether an upgrade of the cluster's Kubernetes may go on. It
	// is there while one is wanted, or isn't done. Ready doesn't depend on it.
	UpgradeAllowedCondition = "UpgradeAllowed"
)

// Conditions of an AddonPlan.
const (
	// CompleteCondition says whether the plan is done: all clusters were asked.
	CompleteCondition = "Complete"

	// StaleCondition is True once the present isn't what the plan is of any more. Negative polarity.
	StaleCondition = "Stale"
)

// Conditions of a ProviderInstance.
const (
	// APICompatibleCondition says whether the installed CRDs serve the version that
	// the instance speaks, with all fields it uses.
	APICompatibleCondition = "APICompatible"

	// NamespacesAccessibleCondition says whether the instance may work in all
	// namespaces of its scope.
	NamespacesAccessibleCondition = "NamespacesAccessible"

	// ScopeHeldCondition says whether the instance holds its scope. It is False
	// while another one holds a part of it.
	ScopeHeldCondition = "ScopeHeld"
)

// Reasons that several conditions share.
const (
	ReadyReason         = "Ready"
	NotReadyReason      = "NotReady"
	PausedReason        = "Paused"
	NotPausedReason     = "NotPaused"
	DeletingReason      = "Deleting"
	NotDeletingReason   = "NotDeleting"
	InternalErrorReason = "InternalError"
	// RemovalHeldReason: a change would take add-ons away from many clusters at once, and
	// waits until somebody confirms it.
	RemovalHeldReason = "RemovalHeld"
	// TooManyStacksReason: a cluster runs as many stacks as it can, and others that select it
	// are left out.
	TooManyStacksReason = "TooManyStacks"
)

// Reasons of the Valid condition.
const (
	ValidReason             = "Valid"
	InvalidSelectorReason   = "InvalidSelector"
	DependencyCycleReason   = "DependencyCycle"
	UnknownDependencyReason = "UnknownDependency"
	DuplicateReleaseReason  = "DuplicateRelease"
	InvalidValuesReason     = "InvalidValues"
	InvalidReadinessReason  = "InvalidReadiness"
	InvalidExpressionReason = "InvalidExpression"
	InvalidRolloutReason    = "InvalidRollout"
	InvalidPatchReason      = "InvalidPatch"
	InvalidDirectoryReason  = "InvalidDirectory"
	// InvalidSourceReason: the bundle of spec.source isn't what the spec takes it for.
	InvalidSourceReason  = "InvalidSource"
	InvalidVersionReason = "InvalidVersion"
	// UnknownFieldsReason: the spec has fields that the instance doesn't know, as it is older than the CRDs. It can't
	// know which of them restrict the stack, so it leaves alone what is installed.
	UnknownFieldsReason = "UnknownFields"
)

// Reasons of the SourcesReady condition. While it is False, it has that of the
// source, as add-ons have.
const (
	SourcesReadyReason   = "SourcesReady"
	SourcesPendingReason = "SourcesPending"
	// SourceAvailableReason and SourceNotAskedReason are reasons of the Available
	// condition of one source; while it is False, it has the source's. While nobody has
	// asked any of them, NotAsked is that of SourcesReady, too.
	SourceAvailableReason = "Available"
	SourceNotAskedReason  = "NotAsked"
)

// Reasons of the ClustersReady condition.
const (
	ClustersReadyReason       = "ClustersReady"
	ClustersProgressingReason = "ClustersProgressing"
	ClustersFailedReason      = "ClustersFailed"
	NoClusterMatchesReason    = "NoClusterMatches"
)

// Reasons of the ControlPlaneInitialized condition.
const (
	ControlPlaneInitializedReason    = "ControlPlaneInitialized"
	ControlPlaneNotInitializedReason = "ControlPlaneNotInitialized"
	ClusterNotFoundReason            = "ClusterNotFound"
)

// AnotherClusterReason is a reason of the ClusterReachable condition: the kubeconfig leads to another cluster than
// the one that the add-ons are installed on.
const AnotherClusterReason = "AnotherCluster"

// Reasons of the AddonsReady condition. The reason of a failed or progressing
// add-on is in status.addons.
const (
	AddonsReadyReason       = "AddonsReady"
	AddonsProgressingReason = "AddonsProgressing"
	AddonsFailedReason      = "AddonsFailed"
	AddonsUnknownReason     = "AddonsUnknown"
	// AddonsDegradedReason: an add-on is Degraded.
	AddonsDegradedReason = "AddonsDegraded"
	// RecordsUnreadableReason: the release records of the workload cluster can't be read, so nobody knows what it runs.
	RecordsUnreadableReason = "RecordsUnreadable"
	NoStackMatchesReason    = "NoStackMatches"
)

// Reasons of the UpgradeAllowed condition, and of gates in status.upgrade.
const (
	// UpgradeAllowedReason: nothing is left to do before the upgrade may go on.
	UpgradeAllowedReason = "UpgradeAllowed"
	// UpgradeAddonsNotReadyReason: the upgrade waits for add-ons to be ready.
	UpgradeAddonsNotReadyReason = "AddonsNotReady"
	// UpgradeStackUndecidedReason: an assigned stack has no valid revision, or the assignment is to follow a change.
	UpgradeStackUndecidedReason = "StackUndecided"
	// UpgradeClusterUnreachableReason: whether the add-ons are ready can't be seen.
	UpgradeClusterUnreachableReason = "ClusterUnreachable"
	// UpgradeNoCompatibleVersionReason: an add-on isn't for a version on the way.
	UpgradeNoCompatibleVersionReason = "NoCompatibleVersion"
	// UpgradeAPIRemovedReason: an add-on has objects of a kind that isn't served any more.
	UpgradeAPIRemovedReason = "APIRemoved"
	// UpgradeHoldExpiredReason: the upgrade was held for holdSeconds.
	UpgradeHoldExpiredReason = "HoldExpired"
	// UpgradeGatesSkippedReason: the annotation skip-gates names the target.
	UpgradeGatesSkippedReason = "GatesSkipped"
	// UpgradeNotAskedReason: nothing asks whether the upgrade may go on.
	UpgradeNotAskedReason = "NotAsked"
)

// Reasons of the Complete condition. A template that isn't valid has those of the Valid condition, and one whose source can't be
// read those of SourcesReady.
const (
	PlanCompleteReason = "Complete"
	// PlanWaitingReason: other plans of the namespace come first, or the stack isn't kept as a revision yet.
	PlanWaitingReason = "Waiting"
	// PlanRunningReason: clusters are asked.
	PlanRunningReason = "Running"
	// PlanStackNotFoundReason: there is no such AddonStack in the scope of the instance, or it has no revision yet.
	PlanStackNotFoundReason = "StackNotFound"
	// PlanRevisionNotFoundReason: the AddonStack has no such revision.
	PlanRevisionNotFoundReason = "RevisionNotFound"
	// PlanVersionNotNamedReason: the template has a range, a channel or a branch that the stack doesn't follow yet.
	PlanVersionNotNamedReason = "VersionNotNamed"
	// PlanInvalidTemplateReason: the template isn't the spec of an AddonStack.
	PlanInvalidTemplateReason = "InvalidTemplate"
)

// Reasons of the Stale condition.
const (
	PlanCurrentReason = "Current"
	// PlanTargetChangedReason: the stack has another target, or the template would be another revision.
	PlanTargetChangedReason = "TargetChanged"
	// PlanInputsChangedReason: values that the revision pins are others now.
	PlanInputsChangedReason = "InputsChanged"
	// PlanClustersChangedReason: the revision selects other clusters.
	PlanClustersChangedReason = "ClustersChanged"
)

// Reasons of the APICompatible condition.
const (
	APICompatibleReason       = "APICompatible"
	APIVersionNotServedReason = "APIVersionNotServed"
	APIFieldsMissingReason    = "APIFieldsMissing"
	// APIFieldsUnknownReason: the CRDs have fields that the instance doesn't know. The condition is True:
	// the instance works on AddonStacks that don't use them.
	APIFieldsUnknownReason = "APIFieldsUnknown"
)

// Reasons of the NamespacesAccessible condition.
const (
	NamespacesAccessibleReason   = "NamespacesAccessible"
	NamespaceNotAccessibleReason = "NamespaceNotAccessible"
)

// Reasons of the ScopeHeld condition.
const (
	ScopeHeldReason          = "ScopeHeld"
	ScopeTakenReason         = "ScopeTaken"
	ScopeForbiddenReason     = "ScopeForbidden"
	ScopeNotClaimedReason    = "ScopeNotClaimed"
	WebhookUnavailableReason = "WebhookUnavailable"
)

// HeartbeatExpiredReason is the reason of a ProviderInstance's Ready condition,
// which is Unknown then: its process ended without a word, or is cut off.
const HeartbeatExpiredReason = "HeartbeatExpired"
