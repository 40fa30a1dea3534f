// SPDX-License-Identifier: Apache-2.0

// Package reasons is the one place that says what follows from the reason of an add-on
// in status.addons of a ClusterAddon.
package reasons

// Reasons beside those of the packages failure, render and deliver. They are stable API.
const (
	// ReleaseTaken: another AddonStack has an add-on of this name and namespace.
	ReleaseTaken = "ReleaseTaken"
	// WaitingForDependency: an add-on of dependsOn isn't ready.
	WaitingForDependency = "WaitingForDependency"
	// WaitingForPrecondition: a condition of preconditions doesn't hold.
	WaitingForPrecondition = "WaitingForPrecondition"
	// WaitingForDependent: an add-on that depends on this one isn't removed yet, or stays.
	WaitingForDependent = "WaitingForDependent"
	// WaitingForSuccessor: an add-on that may take objects over isn't ready yet.
	WaitingForSuccessor = "WaitingForSuccessor"
	// WaitingForControlPlane: a change waits for the control plane to be upgraded.
	WaitingForControlPlane = "WaitingForControlPlane"
	// WaitingForWorkers: a change waits for the workers to be upgraded.
	WaitingForWorkers = "WaitingForWorkers"
	// WaitingForUpgrade: a removal waits for an upgrade of Kubernetes to be done.
	WaitingForUpgrade = "WaitingForUpgrade"
	// StackUndecided: the add-on's stack, or one that may replace it, has no valid
	// revision, or is assigned to a Cluster that it doesn't select any more.
	StackUndecided = "StackUndecided"
	// StackUnknown: no stack wants the add-on, and this ClusterAddon has never run it.
	StackUnknown = "StackUnknown"
	// Retrying: a request failed in a way that another try may mend.
	Retrying = "Retrying"
	// ResponseTooLarge: the cluster answered with more than is read.
	ResponseTooLarge = "ResponseTooLarge"
	// TooManyKinds: the cluster has more API versions than are read.
	TooManyKinds = "TooManyKinds"
	// RecordLost: the add-on's record doesn't stay in the cluster.
	RecordLost = "RecordLost"
	// NoCompatibleVersion: the add-on isn't for the version of Kubernetes that the cluster runs.
	NoCompatibleVersion = "NoCompatibleVersion"
	// ServiceAccountRequired: the provider instance doesn't act with its own rights.
	ServiceAccountRequired = "ServiceAccountRequired"
	// RecordsUnreadable: the cluster has more release records than are kept.
	RecordsUnreadable = "RecordsUnreadable"
	// ValuesNotFound: an object or key of valuesFrom is missing.
	ValuesNotFound = "ValuesNotFound"
	// ValuesInvalid: values are no YAML map, or have a key twice.
	ValuesInvalid = "ValuesInvalid"
	// ProviderObjectUnavailable: an object that the values template refers to can't be read.
	ProviderObjectUnavailable = "ProviderObjectUnavailable"
	// ProviderObjectRefused: an object that the values template refers to isn't in the Cluster's namespace.
	ProviderObjectRefused = "ProviderObjectRefused"
)
