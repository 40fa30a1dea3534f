// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// Stalled tells GitOps tools to give up: a person has to act.
func TestStalled(t *testing.T) {
	for name, tc := range map[string]struct {
		clusters, sources metav1.Condition
		want              bool
	}{
		"all is well":                            {report.Condition("", metav1.ConditionTrue, addonsv1.ClustersReadyReason, ""), report.Condition("", metav1.ConditionTrue, addonsv1.SourcesReadyReason, ""), false},
		"clusters are on their way":              {report.Condition("", metav1.ConditionFalse, addonsv1.ClustersProgressingReason, ""), report.Condition("", metav1.ConditionFalse, failure.SourceUnavailable, ""), false},
		"a cluster failed":                       {report.Condition("", metav1.ConditionFalse, addonsv1.ClustersFailedReason, ""), report.Condition("", metav1.ConditionFalse, failure.ArtifactNotFound, ""), true},
		"all is installed, and the source isn't": {report.Condition("", metav1.ConditionTrue, addonsv1.ClustersReadyReason, ""), report.Condition("", metav1.ConditionFalse, failure.ArtifactNotFound, ""), false},
		"the spec waits for what isn't there":    {report.Condition("", metav1.ConditionTrue, addonsv1.ClustersReadyReason, ""), report.Condition("", metav1.ConditionUnknown, failure.ArtifactNotFound, ""), true},
		"the spec waits for a source":            {report.Condition("", metav1.ConditionTrue, addonsv1.ClustersReadyReason, ""), report.Condition("", metav1.ConditionUnknown, failure.SourceUnavailable, ""), false},
		"the spec waits for its first version":   {report.Condition("", metav1.ConditionTrue, addonsv1.ClustersReadyReason, ""), report.Condition("", metav1.ConditionUnknown, addonsv1.SourcesPendingReason, ""), false},
	} {
		s := &addonsv1.AddonStack{}
		tc.clusters.Type, tc.sources.Type = addonsv1.ClustersReadyCondition, addonsv1.SourcesReadyCondition
		conditions.Set(s, report.Condition(addonsv1.ValidCondition, metav1.ConditionTrue, addonsv1.ValidReason, ""))
		conditions.Set(s, tc.clusters)
		conditions.Set(s, tc.sources)
		report.Summarize(s)
		if conditions.IsTrue(s, addonsv1.StalledCondition) != tc.want {
			t.Errorf("%s: %+v", name, s.Status.Conditions)
		}
	}
}
