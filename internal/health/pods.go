// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-chandler/chandler/internal/message"
)

// Reasons of findings. They are stable API.
const (
	// ReasonCrashLoopBackOff: a container ends again and again.
	ReasonCrashLoopBackOff = "CrashLoopBackOff"
	// ReasonImagePullBackOff: an image can't be pulled.
	ReasonImagePullBackOff = "ImagePullBackOff"
	// ReasonContainerError: a container can't be made or started, as for a Secret that it names.
	ReasonContainerError = "ContainerError"
	// ReasonUnschedulable: there is no node for a pod.
	ReasonUnschedulable = "Unschedulable"
	// ReasonPodsRefused: the API server refuses pods, as for a quota.
	ReasonPodsRefused = "PodsRefused"
	// ReasonUpdateStuck: a rolling update didn't come to its end in its time.
	ReasonUpdateStuck = "UpdateStuck"
	// ReasonReplicasUnavailable: fewer replicas are available than before.
	ReasonReplicasUnavailable = "ReplicasUnavailable"
	// ReasonObjectNotReady: a readiness check isn't true any more.
	ReasonObjectNotReady = "ObjectNotReady"
)

// waitingReasons are those of containers that don't run, by the kubelet's words
// (k8s.io/kubernetes/pkg/kubelet/images/types.go and container/sync_result.go).
var waitingReasons = map[string]string{
	"CrashLoopBackOff": ReasonCrashLoopBackOff,

	"ImagePullBackOff": ReasonImagePullBackOff, "ErrImagePull": ReasonImagePullBackOff, "ErrImageNeverPull": ReasonImagePullBackOff,
	"InvalidImageName": ReasonImagePullBackOff, "ImageInspectError": ReasonImagePullBackOff, "RegistryUnavailable": ReasonImagePullBackOff,

	"CreateContainerConfigError": ReasonContainerError, "CreateContainerError": ReasonContainerError, "RunContainerError": ReasonContainerError,
	"PostStartHookError": ReasonContainerError, "PreCreateHookError": ReasonContainerError, "PreStartHookError": ReasonContainerError,
}

// whyNoneRuns returns why the first pod doesn't run of which that is known: an end of its container, or else no node. It
// returns nil if each pod runs, or may soon.
func whyNoneRuns(pods []corev1.Pod) (found *Finding) {
	for i := range pods {
		if reason, container := whyNotRunning(&pods[i]); reason != "" {
			text := fmt.Sprintf("Container %s of pod %s: %s", container.Name, pods[i].Name, reason)
			switch reason {
			case ReasonImagePullBackOff:
				text += ", image " + message.Shorten(container.Image, maxImage)
			case ReasonCrashLoopBackOff:
				text += ", see its log"
			}
			found = &Finding{Reason: reason, Message: text}
			if waits := container.State.Waiting; waits != nil && reason != ReasonCrashLoopBackOff { // of that it counts the seconds alone
				found.Words = waits.Message
			}
			return found
		}
		if words, is := isUnschedulable(&pods[i]); is && found == nil {
			found = &Finding{Reason: ReasonUnschedulable, Message: fmt.Sprintf("Pod %s has no node", pods[i].Name), Words: words}
		}
	}
	return found
}

// maxImage is the length in bytes of an image's name in a message: the cluster says what it is.
const maxImage = 256

// whyNotRunning returns why a container of a pod doesn't run; "" if it runs, or may soon.
func whyNotRunning(pod *corev1.Pod) (reason string, container corev1.ContainerStatus) {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch {
		case c.State.Waiting != nil && waitingReasons[c.State.Waiting.Reason] != "":
			return waitingReasons[c.State.Waiting.Reason], c
		// Between its ends, a container that crashes runs for a moment, or has ended.
		case c.RestartCount >= crashes && !c.Ready && c.LastTerminationState.Terminated != nil && c.LastTerminationState.Terminated.ExitCode != 0:
			return ReasonCrashLoopBackOff, c
		}
	}
	return "", container
}

// crashes is after how many restarts a container that isn't ready counts as one that crashes.
const crashes = 3

// isUnschedulable reports whether there is no node for a pod, and returns what the scheduler says of it.
func isUnschedulable(pod *corev1.Pod) (words string, is bool) {
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
	if at < 0 {
		return "", false
	}
	return pod.Status.Conditions[at].Message, true
}
