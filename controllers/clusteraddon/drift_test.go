// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"
	"time"

	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
)

// A cluster that answers with errors isn't asked all the time, however long ago its objects were to be compared.
func TestRepairsThatFailAreNotTriedAllTheTime(t *testing.T) {
	record := installedAddon("platform", "web")
	record.Applied = "none"
	a := &addon{Addon: addonsv1.Addon{Name: "web", Namespace: "apps"}}
	q, _ := askedCluster(t, record)
	q.watched = fleetwatch.NewObjects(func(multicluster.ClusterName) {})
	memory := &q.memory.of(a.release()).drift
	memory.revision, memory.lookAt = 1, q.now.Add(-time.Hour)
	one := addonResult{status: a.status()}
	one.status.Revision = 1
	if one = (driftRepair{q}).correctDrift(t.Context(), a, record, one); one.err == nil || one.retryAfter < time.Second {
		t.Errorf("it comes again after %s: %v", one.retryAfter, one.err)
	}
}

// A record of an older version doesn't say what was applied: its objects are compared, to note that.
func TestRecordsWithoutWhatWasAppliedAreLookedAt(t *testing.T) {
	for applied, looks := range map[string]bool{"none": false, "": true} {
		record := installedAddon("platform", "web")
		record.Applied = applied
		q, asked := askedCluster(t, record)
		q.watched = fleetwatch.NewObjects(func(multicluster.ClusterName) {})
		a := &addon{Addon: addonsv1.Addon{Name: "web", Namespace: "apps"}, stack: "platform"}
		one := addonResult{status: a.status()}
		one.status.Revision = 1
		driftRepair{q}.correctDrift(t.Context(), a, record, one)
		if (*asked > 0) != looks {
			t.Errorf("applied %q: the cluster is asked %d times", applied, *asked)
		}
	}
}
