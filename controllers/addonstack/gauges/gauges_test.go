// SPDX-License-Identifier: Apache-2.0

package gauges_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/gauges"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// However many stacks a namespace has, its series are limited, and those of others are there.
func TestSeriesOfANamespaceAreLimited(t *testing.T) {
	o := objects{stacks: []addonsv1.AddonStack{{ObjectMeta: metav1.ObjectMeta{Namespace: "victim", Name: "platform"}}}}
	for i := range 2 * gauges.MaxAddons {
		o.stacks = append(o.stacks, addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("stack-", i)}})
	}
	if got := testutil.CollectAndCount(gauges.Series{Cache: o}, "chandler_stack_clusters"); got != (gauges.MaxAddons+1)*6 {
		t.Errorf("%d series, want those of %d stacks and one more", got, gauges.MaxAddons)
	}
}

// objects are what a cache has.
type objects struct {
	client.Client
	stacks   []addonsv1.AddonStack
	clusters []addonsv1.ClusterAddon
}

func (o objects) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *addonsv1.AddonStackList:
		list.Items = append(list.Items, o.stacks...)
	case *addonsv1.ClusterAddonList:
		list.Items = append(list.Items, o.clusters...)
	}
	return nil
}

// fleetOf returns stack platform on so many clusters. Add-on cni failed on each fifth one.
func fleetOf(clusters int) objects {
	s := addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform"}}
	s.Spec.Addons = []addonsv1.Addon{{Name: "cni"}, {Name: "dns"}}
	s.Status.Clusters = &addonsv1.ClusterCounts{Total: int32(clusters), Ready: int32(clusters - clusters/5), Failed: int32(clusters / 5)}
	s.Status.Conditions = []metav1.Condition{{Type: addonsv1.ReadyCondition, Status: metav1.ConditionFalse}}
	is := objects{stacks: []addonsv1.AddonStack{s}}
	for i := range clusters {
		ca := addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("prod-", i)}}
		phase := addonsv1.AddonReady
		if i%5 == 0 {
			phase = addonsv1.AddonFailed
		}
		ca.Status.Addons = []addonsv1.AddonStatus{{Name: "cni", Stack: "platform", Phase: phase}, {Name: "dns", Stack: "platform", Phase: addonsv1.AddonReady}}
		is.clusters = append(is.clusters, ca)
	}
	return is
}

func TestStateOfStacks(t *testing.T) {
	want := `
# HELP chandler_stack_clusters Number of clusters of a stack by state: ready, progressing, failed, waiting, unstarted, or held, which counts beside the others.
# TYPE chandler_stack_clusters gauge
chandler_stack_clusters{namespace="team",stack="gone",state="held"} 1
chandler_stack_clusters{namespace="team",stack="platform",state="failed"} 2
chandler_stack_clusters{namespace="team",stack="platform",state="held"} 1
chandler_stack_clusters{namespace="team",stack="platform",state="progressing"} 0
chandler_stack_clusters{namespace="team",stack="platform",state="ready"} 8
chandler_stack_clusters{namespace="team",stack="platform",state="unstarted"} 0
chandler_stack_clusters{namespace="team",stack="platform",state="waiting"} 0
# HELP chandler_stack_addon_clusters Number of clusters of a stack on which an add-on is in a phase.
# TYPE chandler_stack_addon_clusters gauge
`
	for _, phase := range strings.Fields("Degraded Failed Installing Pending Ready Removing Unassigned Upgrading") {
		cni, dns := map[string]int{"Failed": 2, "Ready": 8}[phase], map[string]int{"Ready": 10}[phase]
		for addon, count := range map[string]int{"cni": cni, "dns": dns} {
			want += fmt.Sprintf("chandler_stack_addon_clusters{addon=%q,namespace=\"team\",phase=%q,stack=\"platform\"} %d\n", addon, phase, count)
		}
	}
	o := fleetOf(10)
	held := &addonsv1.HeldRemoval{}
	o.clusters[3].Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", HeldRemoval: held}, {Name: "gone", HeldRemoval: held}}
	o.clusters[0].Status.Addons[0].Phase, o.clusters[0].Status.Addons[0].Reason = addonsv1.AddonPending, failure.ArtifactNotFound // counts as failed
	c := gauges.Series{Cache: o}
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), "chandler_stack_clusters", "chandler_stack_addon_clusters"); err != nil {
		t.Error(err)
	}
	if got := testutil.CollectAndCount(c, "chandler_stack_condition"); got != 4*3 {
		t.Errorf("%d series of conditions", got)
	}
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	if got := testutil.CollectAndCount(gauges.Series{Cache: objects{}}); got != 0 {
		t.Errorf("%d series of a stack that is gone", got)
	}
}

func TestVersionsThatWait(t *testing.T) {
	o := fleetOf(1)
	if got := testutil.CollectAndCount(gauges.Series{Cache: o}, "chandler_stack_versions_waiting"); got != 0 {
		t.Errorf("%d series of a stack that follows nothing", got)
	}
	o.stacks[0].Status.Following = []addonsv1.FollowedVersion{{Addon: "cni", Version: "1.0.0"}, {Addon: "dns", Version: "1.0.0", Available: "1.1.0"}}
	want := `
# HELP chandler_stack_versions_waiting Number of newer versions that a stack's add-ons follow and don't take.
# TYPE chandler_stack_versions_waiting gauge
chandler_stack_versions_waiting{namespace="team",stack="platform"} 1
`
	if err := testutil.CollectAndCompare(gauges.Series{Cache: o}, strings.NewReader(want), "chandler_stack_versions_waiting"); err != nil {
		t.Error(err)
	}
}

// However many clusters a stack has, its series are as many.
func TestStatesDontGrowWithClusters(t *testing.T) {
	few, many := testutil.CollectAndCount(gauges.Series{Cache: fleetOf(10)}), testutil.CollectAndCount(gauges.Series{Cache: fleetOf(1000)})
	if few != many || few == 0 {
		t.Errorf("%d series with 10 clusters, %d with 1,000", few, many)
	}
}
