// SPDX-License-Identifier: Apache-2.0

package clusteraddon

// Reasons in status.addons, beside those of the packages source, render and
// deliver. They are stable API.
const (
	// ReasonReleaseTaken: another AddonStack has an add-on of this name and namespace.
	ReasonReleaseTaken = "ReleaseTaken"
	// ReasonWaitingForDependency: an add-on of dependsOn isn't ready.
	ReasonWaitingForDependency = "WaitingForDependency"
	// ReasonWaitingForPrecondition: a condition of preconditions doesn't hold.
	ReasonWaitingForPrecondition = "WaitingForPrecondition"
	// ReasonWaitingForDependent: an add-on that depends on this one isn't removed yet.
	ReasonWaitingForDependent = "WaitingForDependent"
	// ReasonWaitingForSuccessor: an add-on that may take objects over isn't ready yet.
	ReasonWaitingForSuccessor = "WaitingForSuccessor"
	// ReasonStackUndecided: the add-on's stack, or one that may replace it, has no valid
	// revision, or is assigned to a Cluster that it doesn't select any more.
	ReasonStackUndecided = "StackUndecided"
	// ReasonStackUnknown: no stack wants the add-on, and this ClusterAddon has never run it.
	ReasonStackUnknown = "StackUnknown"
	// ReasonRetrying: a request failed in a way that another try may mend.
	ReasonRetrying = "Retrying"
	// ReasonResponseTooLarge: the cluster answered with more than is read.
	ReasonResponseTooLarge = "ResponseTooLarge"
	// ReasonTooManyKinds: the cluster has more API versions than are read.
	ReasonTooManyKinds = "TooManyKinds"
	// ReasonRecordLost: the add-on's record doesn't stay in the cluster.
	ReasonRecordLost = "RecordLost"
	// ReasonRecordsUnreadable: the cluster has more release records than are kept.
	ReasonRecordsUnreadable = "RecordsUnreadable"
	// ReasonValuesNotFound: an object or key of valuesFrom is missing.
	ReasonValuesNotFound = "ValuesNotFound"
	// ReasonValuesInvalid: values are no YAML map, or have a key twice.
	ReasonValuesInvalid = "ValuesInvalid"
	// ReasonProviderObjectUnavailable: an object that the values template refers to can't be read.
	ReasonProviderObjectUnavailable = "ProviderObjectUnavailable"
	// ReasonProviderObjectRefused: an object that the values template refers to isn't in the Cluster's namespace.
	ReasonProviderObjectRefused = "ProviderObjectRefused"
)
