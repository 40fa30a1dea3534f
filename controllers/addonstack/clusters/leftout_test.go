// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/clusters"
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
		s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Name: "platform", Namespace: "team"}}
		s.Spec.Addons = []addonsv1.Addon{{Name: "cni", Chart: addonsv1.ChartSource{Path: "cni"}}}
		ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Name: "prod", Namespace: "team"}}
		for i := range tc.stacks {
			ca.Spec.Stacks = append(ca.Spec.Stacks, addonsv1.StackRevision{Name: fmt.Sprint("stack-", i)})
		}
		ca.Spec.Stacks[tc.stacks-1].Name = tc.last
		c, _ := clusters.Count(s, &clusters.Selected{
			Spec: &s.Spec, Members: map[string]*member.Member{}, All: &addonsv1.ClusterAddonList{}, Clusters: []standing.Cluster{{ClusterAddon: ca}},
		}, func(*addonsv1.ClusterAddon) (string, []addonsv1.Addon) { return "platform-1", s.Spec.Addons }, time.Now())
		if c.Reason != tc.want || c.Status != metav1.ConditionFalse || strings.HasPrefix(c.Message, "prod: 64 AddonStacks") != (tc.want == addonsv1.TooManyStacksReason) {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
