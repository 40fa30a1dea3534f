// SPDX-License-Identifier: Apache-2.0

package health

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Judge judges a workload that was read, with some of its pods.
func Judge(o *unstructured.Unstructured, pods []corev1.Pod, before Before) (*Finding, Before) {
	is, err := replicasOf(o)
	if err != nil {
		return nil, before
	}
	return is.judge(pods, before)
}
