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

// Annotations on a Cluster that the assigner of the shared deployment has labelled.
const (
	// AssignedFilterAnnotation holds the watch filter that the assigner chose. Where the label is another one, a person wrote that,
	// and it stays.
	AssignedFilterAnnotation = "addons.cluster.x-k8s.io/assigned-filter"
	// MovedAtAnnotation says when the assigner last gave the Cluster to another instance, in RFC 3339.
	MovedAtAnnotation = "addons.cluster.x-k8s.io/moved-at"
)

// StackGenerationAnnotation on a ControllerRevision holds the newest
// metadata.generation of the AddonStack that it was made from.
const StackGenerationAnnotation = "addons.cluster.x-k8s.io/stack-generation"

// EditedByAnnotation on a ControllerRevision says who edited the AddonStack when that last became the newest one: see
// StackChange. It isn't there if no edit did.
const EditedByAnnotation = "addons.cluster.x-k8s.io/edited-by"

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

// Annotations on a ControllerRevision of an AddonStack. People approve, reject, promote and resume by them. They are of one
// attempt to roll the revision out: the next attempt begins without them.
const (
	// RolloutAttemptAnnotation is written by Chandler: how far the attempt is, as JSON. An attempt ends when the stack
	// changes, also if it goes back to a revision that it had before.
	RolloutAttemptAnnotation = "addons.cluster.x-k8s.io/rollout-attempt"
	// RolloutHaltedAnnotation says that the rollout is halted, and why, as JSON. Chandler writes it. Without the annotation
	// the rollout continues, unless too many clusters still fail.
	RolloutHaltedAnnotation = "addons.cluster.x-k8s.io/rollout-halted"
	// RolloutRejectedAnnotation says why the revision isn't rolled out any more. Without the annotation another attempt
	// begins.
	RolloutRejectedAnnotation = "addons.cluster.x-k8s.io/rollout-rejected"
	// RolloutApprovedAnnotation has the names of waves that may begin, separated by commas; "*" is all of them, without
	// soaks.
	RolloutApprovedAnnotation = "addons.cluster.x-k8s.io/rollout-approved"
	// RolloutPromotedAnnotation has the names of waves that are over without a soak, and without a cluster that is ready,
	// separated by commas.
	RolloutPromotedAnnotation = "addons.cluster.x-k8s.io/rollout-promoted"
	// RolloutInputsReplacedAnnotation names the objects of valuesFrom that have other values by now than the revision was
	// made with, separated by commas. No other cluster is brought to it.
	RolloutInputsReplacedAnnotation = "addons.cluster.x-k8s.io/rollout-inputs-replaced"
)

// HoldRolloutAnnotation on a ClusterAddon keeps the cluster at the revisions that it has, with and without
// spec.rollout. Its value has the names of AddonStacks,
// separated by commas; "*" is all of them.
const HoldRolloutAnnotation = "addons.cluster.x-k8s.io/hold-rollout"
