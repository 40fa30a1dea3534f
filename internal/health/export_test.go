// SPDX-License-Identifier: Apache-2.0

package health

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Judge returns what is wrong with a workload, nil if nothing is known to be, and what is to be given to the next call.
// Pods are its own, or some of them. An object that isn't as Kubernetes has it isn't judged.
func Judge(o *unstructured.Unstructured, pods []corev1.Pod, before Before) (*Finding, Before) {
	is, err := replicasOf(o)
	if err != nil {
		return nil, before
	}
	return is.judge(pods, before)
}
