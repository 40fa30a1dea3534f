// SPDX-License-Identifier: Apache-2.0

package controlplane

import corev1 "k8s.io/api/core/v1"

// SetReady has the status of a pod say whether the pod is ready, as the kubelet does, or the node controller for a lost node.
func SetReady(pod *corev1.Pod, status corev1.ConditionStatus) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			c.Status = status
		}
	}
}

// Break has the status of a pod say what a kubelet says of one whose containers ended several times, and wait for the reason.
func Break(pod *corev1.Pod, reason string) {
	SetReady(pod, corev1.ConditionFalse)
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		c.Ready, c.RestartCount = false, 4
		c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "back-off"}}
	}
}
