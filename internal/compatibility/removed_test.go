// SPDX-License-Identifier: Apache-2.0

package compatibility_test

import (
	"testing"

	"github.com/cluster-chandler/chandler/internal/compatibility"
)

func TestRemoved(t *testing.T) {
	for _, tc := range []struct{ kinds, version, kind, replacement string }{
		{"", "v1.36.0", "", ""},
		{"apps/v1/Deployment,v1/Service", "v1.99.0", "", ""},
		{"apps/v1/Deployment,policy/v1beta1/PodDisruptionBudget", "v1.25.0", "policy/v1beta1/PodDisruptionBudget", "policy/v1/PodDisruptionBudget"},
		{"policy/v1beta1/PodDisruptionBudget", "v1.24.17", "", ""},
		{"policy/v1beta1/PodDisruptionBudget", "v1.25.0-eks-1", "policy/v1beta1/PodDisruptionBudget", "policy/v1/PodDisruptionBudget"},
		{"networking.k8s.io/v1beta1/IPAddress", "v1.36.3", "", ""},
		{"networking.k8s.io/v1beta1/IPAddress", "v1.37.0", "networking.k8s.io/v1beta1/IPAddress", ""},
		{"policy/v1beta1/PodSecurityPolicy,example.org/v1beta1/PodDisruptionBudget", "v1.30.0", "", ""}, // none of today's Kubernetes
		{"Nonsense,a/b/c/d", "v1.30.0", "", ""},
		{"policy/v1beta1/PodDisruptionBudget", "what", "", ""},
	} {
		if kind, replacement := compatibility.Removed(tc.kinds, tc.version); kind != tc.kind || replacement != tc.replacement {
			t.Errorf("%s in %s: %q, %q", tc.kinds, tc.version, kind, replacement)
		}
	}
}
