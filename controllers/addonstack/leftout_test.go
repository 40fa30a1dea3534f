// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// TestStackThatAClusterHasNoRoomFor says so: it isn't assigned, and nothing else tells of it.
func TestStackThatAClusterHasNoRoomFor(t *testing.T) {
	for name, tc := range map[string]struct {
		stacks int
		last   string
		want   string
	}{
		"there is room":  {stack.MaxOfCluster - 1, "other", addonsv1.ClustersProgressingReason},
		"there is none":  {stack.MaxOfCluster, "other", addonsv1.TooManyStacksReason},
		"it has a place": {stack.MaxOfCluster, "platform", addonsv1.ClustersProgressingReason},
	} {
		r, s, revision := keeping(t)
		ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
		for i := range tc.stacks {
			ca.Spec.Stacks = append(ca.Spec.Stacks, addonsv1.StackRevision{Name: fmt.Sprint("stack-", i)})
		}
		ca.Spec.Stacks[tc.stacks-1].Name = tc.last
		r.count(s, &selectedClusters{
			spec: &s.Spec, members: map[string]*member.Member{}, all: &addonsv1.ClusterAddonList{}, selected: []standing.Cluster{{ClusterAddon: ca}},
		}, func(*addonsv1.ClusterAddon) (string, []addonsv1.Addon) { return revision.Name, s.Spec.Addons })
		c := ptr.Deref(conditions.Get(s, addonsv1.ClustersReadyCondition), metav1.Condition{})
		if c.Reason != tc.want || c.Status != metav1.ConditionFalse || strings.HasPrefix(c.Message, "prod: 64 AddonStacks") != (tc.want == addonsv1.TooManyStacksReason) {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
