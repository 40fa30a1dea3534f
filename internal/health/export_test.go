// SPDX-License-Identifier: Apache-2.0

package health

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Evaluate returns the finding about a workload that was read, with some of its pods.
func Evaluate(o *unstructured.Unstructured, pods []corev1.Pod, before Before) (*Finding, Before) {
	is, err := replicasOf(o)
	if err != nil {
		return nil, before
	}
	return is.evaluate(pods, before)
}
