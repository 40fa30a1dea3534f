// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// TestServiceAccountOfWhatIsRemoved has records that somebody in the workload cluster may have written.
func TestServiceAccountOfWhatIsRemoved(t *testing.T) {
	for name, tc := range map[string]struct {
		written, found string
		uid            types.UID // that the status is about
		want           string
		// mayGo says whether it is removed where an account is required.
		mayGo bool
	}{
		"the record is as it was written": {"deployer", "deployer", "1", "deployer", true},
		"the record has another":          {"deployer", "admin", "1", "", true},
		"the record has lost it":          {"deployer", "", "1", "", false},
		"the status is from a backup":     {"deployer", "deployer", "previous", "", true},
		"it was delivered without any":    {"", "", "1", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			written := deliver.Summary{
				Release: deliver.Release{Namespace: "web", Name: "web"}, Complete: true, Content: "sha256:1",
				Terms: deliver.Terms{Stack: "platform", ServiceAccount: tc.written},
			}
			found := written
			found.ServiceAccount = tc.found
			ca := &addonsv1.ClusterAddon{Status: addonsv1.ClusterAddonStatus{
				ObservedUID: tc.uid, Addons: []addonsv1.AddonStatus{{Name: "web", Namespace: "web", Stack: "platform", RecordDigest: written.Proof()}},
			}}
			ca.UID = "1"
			for required, mayGo := range map[bool]bool{false: true, true: tc.mayGo} {
				q := &clusterRun{Reconciler: &Reconciler{RequireImpersonation: required}, ca: ca, stored: ca.DeepCopy(), memory: newMemory()}
				q.proofs = q.memory.proofs.restore(q.stored, ca.UID)
				if got := q.unwantedStatus(found, addonsv1.AddonUnassigned).ServiceAccountName; got != tc.want {
					t.Errorf("ServiceAccount %q in the status, expected %q", got, tc.want)
				}
				if got := q.mayRemove(found); got != mayGo {
					t.Errorf("required: %t: may be removed: %t", required, got)
				}
				if isProven := reflect.DeepEqual(found, written) && tc.uid == "1"; q.isProven(found) != isProven {
					t.Errorf("proven: %t", !isProven)
				}
			}
		})
	}
}
