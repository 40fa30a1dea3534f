// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Labels on objects of the management cluster, and on release records.
const (
	// StackNameLabel names the AddonStack that a ControllerRevision is a snapshot of,
	// or that a release is from.
	StackNameLabel = "addons.cluster.x-k8s.io/stack"

	// AssignedStackLabelPrefix begins the labels of a ClusterAddon that name its AddonStacks, as in
	// "stack.addons.cluster.x-k8s.io/platform". Their values are empty.
	AssignedStackLabelPrefix = "stack.addons.cluster.x-k8s.io/"
)

// Labels on every object that Chandler installs in a workload cluster, and on
// the release records there. Both together identify the add-on that owns the
// object.
const (
	// AddonLabel holds the add-on's release name.
	AddonLabel = "addons.cluster.x-k8s.io/addon"
	// AddonNamespaceLabel holds the namespace of the add-on's release.
	AddonNamespaceLabel = "addons.cluster.x-k8s.io/addon-namespace"
)

// SharedWatchFilter is the value of the watch label (cluster.x-k8s.io/watch-filter)
// of an AddonStack that is meant for the Clusters of all instances of its
// namespace, whatever their --watch-filter. No instance can have it as its own.
const SharedWatchFilter = "shared"

// StackGenerationAnnotation on a ControllerRevision holds the newest
// metadata.generation of the AddonStack that it was made from.
const StackGenerationAnnotation = "addons.cluster.x-k8s.io/stack-generation"

// LookNowAnnotation on an AddonStack lets Chandler look for newer versions at once,
// each time that its value changes. Any value will do, as the present time.
const LookNowAnnotation = "addons.cluster.x-k8s.io/look-now"

// ReconcileNowAnnotation on a ClusterAddon has Chandler try again at once what failed, look at
// all objects, and repeat an upgrade that was rolled back, each time that its value changes.
// Any value will do, as the present time. status.lastReconcileNow is the last one.
const ReconcileNowAnnotation = "addons.cluster.x-k8s.io/reconcile-now"

// LastRemovalsAnnotation on a ClusterAddon says when add-ons were last taken away from the cluster, as a JSON object
// of times by the name of their AddonStack. Controllers write it, and count by it which removals are held.
const LastRemovalsAnnotation = "addons.cluster.x-k8s.io/last-removals"

// ConfirmRemovalAnnotation on a ClusterAddon lets a held removal through, if its value is
// the confirmation of spec.stacks[].heldRemoval. It is taken off when it was looked at.
const ConfirmRemovalAnnotation = "addons.cluster.x-k8s.io/confirm-removal"

// Annotations on a ControllerRevision of an AddonStack with spec.rollout. People approve, reject and promote by them.
const (
	// RolloutCauseAnnotation says how the revision came: Edited by an edit of the AddonStack, or else Followed. It isn't there
	// if the revision was made without a rollout.
	RolloutCauseAnnotation = "addons.cluster.x-k8s.io/rollout-cause"
	// RolloutStartedAnnotation says when the first cluster was brought to it, in RFC 3339.
	RolloutStartedAnnotation = "addons.cluster.x-k8s.io/rollout-started"
	// RolloutCompletedAnnotation says when the last cluster was ready at it, in RFC 3339.
	RolloutCompletedAnnotation = "addons.cluster.x-k8s.io/rollout-completed"
	// RolloutRejectedAnnotation says why it isn't rolled out any more. Without the annotation it is tried again.
	RolloutRejectedAnnotation = "addons.cluster.x-k8s.io/rollout-rejected"
	// RolloutApprovedAnnotation has the names of waves that may begin, separated by commas; "*" is all of them, without
	// soaks.
	RolloutApprovedAnnotation = "addons.cluster.x-k8s.io/rollout-approved"
	// RolloutInputsReplacedAnnotation names the objects of valuesFrom that have other values by now than the revision was
	// made with, separated by commas. No other cluster is brought to it.
	RolloutInputsReplacedAnnotation = "addons.cluster.x-k8s.io/rollout-inputs-replaced"
)

// HoldRolloutAnnotation on a ClusterAddon keeps the cluster out of rollouts. Its value has the names of AddonStacks,
// separated by commas; "*" is all of them.
const HoldRolloutAnnotation = "addons.cluster.x-k8s.io/hold-rollout"
