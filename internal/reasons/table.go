// SPDX-License-Identifier: Apache-2.0

package reasons

import (
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/health"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

var (
	pending            = []addonsv1.AddonPhase{addonsv1.AddonPending}
	failed             = []addonsv1.AddonPhase{addonsv1.AddonFailed}
	failedOrPending    = []addonsv1.AddonPhase{addonsv1.AddonFailed, addonsv1.AddonPending}
	failedOrUnassigned = []addonsv1.AddonPhase{addonsv1.AddonFailed, addonsv1.AddonUnassigned}
	unassigned         = []addonsv1.AddonPhase{addonsv1.AddonUnassigned}
	installing         = []addonsv1.AddonPhase{addonsv1.AddonInstalling, addonsv1.AddonUpgrading}
	underWay           = []addonsv1.AddonPhase{addonsv1.AddonInstalling, addonsv1.AddonUpgrading, addonsv1.AddonRemoving}
	degraded           = []addonsv1.AddonPhase{addonsv1.AddonDegraded}
	degradedOrUnderWay = []addonsv1.AddonPhase{addonsv1.AddonDegraded, addonsv1.AddonInstalling, addonsv1.AddonUpgrading}
	removing           = []addonsv1.AddonPhase{addonsv1.AddonRemoving}
	anyPhase           []addonsv1.AddonPhase
)

// Table has a row for each reason of an add-on, in the order of docs/reference/reasons.md,
// which is generated from it and sorted by phase. A row without a meaning has that of the row before.
var Table = []Reason{
	{WaitingForDependency, pending, Passing, "an add-on of `dependsOn` isn't ready"},
	{WaitingForPrecondition, pending, Passing, "a condition of `preconditions` doesn't hold; the message says which, and why"},
	{WaitingForControlPlane, pending, Passing, "its change is delivered once the control plane is upgraded: `lifecycle.upgrade`"},
	{WaitingForWorkers, pending, Passing, "its change is delivered once all workers are upgraded: `lifecycle.upgrade`"},
	{WaitingForUpgrade, removing, Passing, "it is removed once the upgrade of Kubernetes is done"},
	{StackPaused, []addonsv1.AddonPhase{addonsv1.AddonPending, addonsv1.AddonRemoving}, Passing,
		"its AddonStack has the annotation `cluster.x-k8s.io/paused`, and nothing is written to any cluster: `kubectl chandler resume STACK`. " +
			"If the stack was deleted before it could remove the add-on, make it again without the annotation, or uninstall the release with helm"},
	{WaitingForConfirmation, pending, 0,
		"the removal of other add-ons of its stack is [held](../removals.md#large-removals-are-held), and it may come in their place"},
	{WaitingForOtherClusters, pending, Passing,
		"inputs that [no revision has](values.md#many-clusters-at-once) have changed, and other clusters get theirs first, or failed with them; " +
			"what is installed stays, and is Ready"},
	{job.ReasonWaitingForRenderer, pending, Passing,
		"the processes that render charts are busy, or other charts of this cluster took their time; what is installed stays"},
	{NoCompatibleVersion, failed, 0,
		"the add-on isn't for the version of Kubernetes that the cluster runs: see [Kubernetes versions](../kubernetes-versions.md)"},
	{WaitingForDependent, removing, Passing, "an add-on that depends on this one is removed first"},
	{ValuesNotFound, pending, 0, "create the object or key of `valuesFrom`, or make it `optional`"},
	{deliver.ReasonInputReplaced, pending, 0,
		"a ConfigMap or Secret of `valuesFrom` was changed, and the cluster's turn [in the rollout](../rollouts.md#values-of-configmaps-and-secrets) " +
			"hasn't come; what is installed stays, and is Ready if it is as the cluster's revision wants it"},
	{job.ReasonValuesInvalid, failed, 0, "the values are no YAML map, have a key twice, or are [too large](../limits.md) when they are merged; or a template in `valuesFrom[].name` makes a name that no object can have"},
	{job.ReasonValuesTemplateFailed, failed, 0, "the values template, or a template in `valuesFrom[].name`, failed; the message has the field and line"},
	{job.ReasonTemplateFailed, failed, SourceRead, "a template of the chart failed; the message has its name and line"},
	{job.ReasonTemplateNotRepeatable, failed, 0, "the values template makes something else each time: use a Secret"},
	{ProviderObjectUnavailable, pending, Retried, "an object that the template refers to can't be read"},
	{ProviderObjectRefused, failed, 0,
		"an object that the template refers to is of a kind that isn't namespaced: see [values.md](values.md#templates)"},
	{failure.ArtifactNotFound, failedOrPending, SourceFailed, "the chart isn't where `chart` says"},
	{failure.ArtifactInvalid, failed, SourceRefused, "the chart can't be used; the message says which rule it breaks"},
	{failure.ArtifactTooLarge, failed, SourceRefused, ""},
	{failure.ArtifactRefused, failed, SourceRefused, ""},
	{failure.ArtifactChanged, failed, Passing | Retried | SourceFailed,
		"the source has other content than when it was asked for the version; it is asked again"},
	{failure.SourceDisabled, failed, SourceRefused, "start the manager with `--artifact-root`"},
	{failure.ArtifactPending, pending, Passing | SourceFailed, "the source is being asked; a slow one continues in the background"},
	{failure.DigestMismatch, failed, SourceFailed, "the source has other content than `digest`, or than the registry said"},
	{failure.SourceUnauthorized, failedOrPending, SourceFailed,
		"the source wants credentials, or others: see [When something is wrong](../sources/README.md#when-something-is-wrong)"},
	{failure.SourceUntrusted, pending, SourceFailed,
		"the source's certificate has expired, is for another name, or is of an authority that isn't known: correct it, or the address, or add " +
			"`ca.crt` to the [credentials](../sources/README.md#when-something-is-wrong)"},
	{failure.SourceUnavailable, pending, Passing | Retried | SourceFailed, "the source can't be read now"},
	{failure.SignatureMissing, failedOrPending, SourceFailed,
		"`verify`, or the instance, wants a signature, and there is none: sign it"},
	{failure.SignatureInvalid, failed, SourceFailed,
		"there are signatures, but none by whom `verify`, or the instance, wants, or of something else; the message says " +
			"what was found"},
	{failure.VerificationPolicyInvalid, failedOrPending, SourceFailed,
		"create the object with the key that `verify` names (Pending), or put one there that can be used (Failed)"},
	{job.ReasonKustomizationInvalid, failed, SourceRead,
		"the kustomization can't be built, or asks for what isn't in its artifact; the message has its file, and what " +
			"kustomize says"},
	{job.ReasonPatchFailed, failed, SourceRead,
		"a patch fits no object, or can't be applied to one; the message has its number, from 0"},
	{job.ReasonChartInvalid, failed, SourceRead,
		"the chart, the values, the manifests, or what the chart makes of them is wrong; so is an object that is there " +
			"twice, or a document after `...` without `---`"},
	{job.ReasonSchemaViolation, failed, SourceRead, ""},
	{job.ReasonManifestInvalid, failed, SourceRead, ""},
	{job.ReasonRenderTimeout, failed, Retried | SourceRead, "the chart exceeds a limit"},
	{job.ReasonOutputTooLarge, failed, SourceRead, ""},
	{job.ReasonOutOfMemory, failed, Retried | SourceRead, ""},
	{deliver.ReasonEmptyRendering, failed, SourceRead,
		"the chart rendered to nothing, or to CRDs of `crds/` and hooks alone, though it has objects in the cluster; " +
			"nothing was removed"},
	{job.ReasonGeneratedValuesLost, failed, 0,
		"a Helm release isn't taken over, as the chart would generate fields of its objects again; set these values in the " +
			"add-on's values"},
	{object.ReasonNamespaceMissing, failed, 0, "create the namespace, or set `createNamespace`"},
	{ReleaseTaken, failed, 0, "another AddonStack has an add-on of this name and namespace"},
	{deliver.ReasonReleaseExists, failed, 0, "a Helm release of this name is there; see `adoptionPolicy`"},
	{deliver.ReasonReleaseOwnedByOther, failed, 0, ""},
	{deliver.ReasonReleaseTakenOver, failedOrUnassigned, 0,
		"another management cluster has a ClusterAddon of this name, too, and has made a newer revision: remove the " +
			"Cluster from one of them. To take the release back, delete this ClusterAddon; it is made again. It isn't " +
			"uninstalled from here"},
	{object.ReasonObjectExists, failed, SourceRead, "an object is [someone else's](../ownership.md#whose-an-object-is)"},
	{object.ReasonOwnedByOther, failed, SourceRead, ""},
	{object.ReasonFieldConflict, failed, 0, ""},
	{object.ReasonImmutableField, failed, 0,
		"a field can't be changed; set `immutableFieldPolicy: Recreate`, delete the object by hand if no data is lost with it, or undo the change"},
	{object.ReasonKindMissing, failed, SourceRead, "the cluster doesn't know a kind: install its CRD first, as with `dependsOn`"},
	{object.ReasonForbidden, failed, 0,
		"the kubeconfig's user may not do this: apply, read or delete an object, or write the Secret of the release record; or " +
			"a quota or a webhook refuses that"},
	{object.ReasonObjectRejected, failed, SourceRead,
		"the API server refused an object; all others were applied, and nothing was pruned"},
	{deliver.ReasonObjectFailed, failed, 0, "an object says that it failed, as a Job whose pods do"},
	{deliver.ReasonHookFailed, failed, 0,
		"a hook failed, or isn't done within `progressDeadlineSeconds`: its object of before isn't gone, say, or no webhook " +
			"answers. It is tried again, and is `Failed` until it succeeds. A removal's message says how to go on without it"},
	{deliver.ReasonRollingBack, []addonsv1.AddonPhase{addonsv1.AddonUpgrading}, Passing, "an upgrade failed, and what was deployed before is installed again"},
	{deliver.ReasonRolledBack, failed, 0,
		"an upgrade failed, and what was deployed before is installed again; correct the add-on, or ask for another try with the annotation `addons.cluster.x-k8s.io/reconcile-now`"},
	{deliver.ReasonReadinessTimeout, failed, 0,
		"not ready within `progressDeadlineSeconds`; it still becomes ready if its objects do"},
	{deliver.ReasonReadinessInvalid, failed, 0, "a check of `readiness` can't be used"},
	{deliver.ReasonRecordTooLarge, failed, 0, "the release record doesn't fit in a Secret (1 MiB, compressed): split the add-on, or take out of it what isn't needed. The cluster keeps what it runs"},
	{deliver.ReasonAddonTooLarge, failed, 0,
		"to work on the add-on takes more memory than one cluster, or its namespace, may have: split the add-on, or raise `--memory-per-cluster-mib`"},
	{deliver.ReasonRecordUnreadable, failed, 0,
		"the release record is damaged: restore it from a backup. The message says what is lost if you delete it. Or a Secret " +
			"that is no record is in its place, or v0.1.0 split it into several Secrets"},
	{deliver.ReasonPruneFailed, failed, 0,
		"an object couldn't be deleted, or isn't gone within `progressDeadlineSeconds` (a removal: 600 seconds), mostly " +
			"for a finalizer or a webhook that doesn't answer; it is still waited for"},
	{deliver.ReasonAnswerInvalid, failed, 0,
		"the answer to a write of the release record isn't an API server's: see whether the kubeconfig leads to the " +
			"cluster, and what is between"},
	{deliver.ReasonInternalError, failed, 0,
		"an answer of the cluster, or a record in it, led to a fault of Chandler: report it, with what the manager's log " +
			"says. Other add-ons and clusters go on"},
	{deliver.ReasonWaitingForPostcondition, installing, Passing,
		"a condition of `postconditions` doesn't hold; the message says which, and why"},
	{deliver.ReasonRunningHook, underWay, Passing, "on the way"},
	{object.ReasonWaitingForCRDs, underWay, Passing, ""},
	{deliver.ReasonWaitingForObjects, underWay, Passing, ""},
	{object.ReasonWaitingForDeletion, underWay, Passing, ""},
	{object.ReasonWaitingForWebhook, underWay, Passing, ""},
	{health.ReasonCrashLoopBackOff, degradedOrUnderWay, 0, "a container ends again and again: see its log, with `kubectl logs --previous`"},
	{health.ReasonImagePullBackOff, degradedOrUnderWay, 0, "an image can't be pulled: see the pod's events"},
	{health.ReasonContainerError, degradedOrUnderWay, 0, "a container can't be made or started, mostly for a Secret or ConfigMap that is gone: see the pod's events"},
	{health.ReasonUnschedulable, degradedOrUnderWay, 0, "a pod finds no node: see its events"},
	{health.ReasonPodsRefused, degraded, 0, "the API server refuses pods, as for a quota: see the workload's condition `ReplicaFailure`"},
	{health.ReasonUpdateStuck, degraded, 0, "a rolling update that somebody else began doesn't end: see the workload's condition `Progressing`"},
	{health.ReasonReplicasUnavailable, degraded, 0, "fewer replicas are available than were before, as when a node is lost"},
	{health.ReasonObjectNotReady, degraded, 0, "a check of `readiness` isn't true any more"},
	{WaitingForSuccessor, removing, Passing,
		"a wanted add-on isn't ready yet, and may take over objects of this one: see why, or take it out of its stack"},
	{StackUndecided, unassigned, Passing,
		"the add-on's stack, or one that may have come in its place, has no valid revision. Or the stack no longer selects " +
			"the Cluster but is still assigned to it. The message says which; the add-on stays"},
	{StackUnknown, unassigned, 0,
		"no stack wants the add-on, and this ClusterAddon didn't write its release record. Create the stack with it and take it out once it is Ready, or `helm uninstall` the release. See who may write Secrets in its namespace"},
	{deliver.ReasonReleaseLocked, pending, Passing, "Helm is upgrading or uninstalling the release"},
	{Retrying, anyPhase, Passing, "a request failed, and another try may succeed"},
	{ResponseTooLarge, anyPhase, 0,
		"the cluster answered a request, which the message names, with more than is read " +
			"([security.md](../security.md#what-it-doesnt-trust)): see what answers in the API server's place"},
	{ServiceAccountRequired, failedOrUnassigned, 0,
		"the provider instance runs with `--require-impersonation`, and the stack names no ServiceAccount: " +
			"set `spec.serviceAccountName` ([security.md](../rights.md#serviceaccounts-of-workload-clusters)). The add-on is left as it is"},
	{RecordLost, pending, 0,
		"the add-on's release record is gone after each installation: see what deletes Secrets with the label " +
			"`owner=helm`. It is installed again after pauses of up to five minutes"},
	{TooManyKinds, anyPhase, 0,
		"the cluster says that it has more than 5,000 kinds or 1,000 API versions, or needs more than 2 MiB to say so; remove CRDs"},
	{deliver.ReasonWaitingForMemory, anyPhase, Passing,
		"others have the memory that the add-on, or an answer of the cluster, needs; it is tried again. " +
			"If it lasts, raise the flag `--memory-per-cluster-mib`, `--memory-per-namespace-mib` or `--memory-mib`"},
}
