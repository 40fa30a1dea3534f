// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// TestServiceAccountOfWhatIsRemoved has records that somebody in the workload cluster may have written.
func TestServiceAccountOfWhatIsRemoved(t *testing.T) {
	for name, tc := range map[string]struct {
		status   []addonsv1.AddonStatus
		uid      types.UID // that the status is about
		recorded string
		want     string
		// mayGo says whether it is removed where an account is required.
		mayGo bool
	}{
		"the status has it":               {[]addonsv1.AddonStatus{statusAs("deployer", "platform")}, "1", "deployer", "deployer", true},
		"the record has another":          {[]addonsv1.AddonStatus{statusAs("deployer", "platform")}, "1", "admin", "deployer", true},
		"the record has lost it":          {[]addonsv1.AddonStatus{statusAs("deployer", "platform")}, "1", "", "deployer", true},
		"the record has one, nobody's":    {[]addonsv1.AddonStatus{statusAs("", "platform")}, "1", "admin", "", false},
		"the status is another stack's":   {[]addonsv1.AddonStatus{statusAs("deployer", "other")}, "1", "admin", "admin", false},
		"the status is from a backup":     {[]addonsv1.AddonStatus{statusAs("deployer", "platform")}, "former", "admin", "admin", false},
		"nothing but the record tells":    {nil, "1", "admin", "admin", false},
		"it was delivered without any":    {[]addonsv1.AddonStatus{statusAs("", "platform")}, "1", "", "", false},
		"nothing tells, it has none then": {nil, "1", "", "", false},
	} {
		stored := &addonsv1.ClusterAddon{Status: addonsv1.ClusterAddonStatus{Addons: tc.status, ObservedUID: tc.uid}}
		ca := stored.DeepCopy()
		ca.UID = "1"
		record := deliver.Summary{Release: deliver.Release{Namespace: "web", Name: "web"}, Stack: "platform", ServiceAccount: tc.recorded}
		for required, mayGo := range map[bool]bool{false: true, true: tc.mayGo} {
			q := &request{Reconciler: &Reconciler{RequireImpersonation: required}, ca: ca, stored: stored}
			if got, _ := q.serviceAccountOf(record); got != tc.want {
				t.Errorf("%s: ServiceAccount %q, expected %q", name, got, tc.want)
			}
			if got := q.mayRemove(record); got != mayGo {
				t.Errorf("%s, required: %t: may be removed: %t", name, required, got)
			}
		}
	}
}

func statusAs(serviceAccount, stack string) addonsv1.AddonStatus {
	return addonsv1.AddonStatus{Name: "web", Namespace: "web", Stack: stack, ServiceAccountName: serviceAccount}
}
