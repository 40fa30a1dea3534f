// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source"
)

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

func collectorOf(t *testing.T, o objects) *collector {
	t.Helper()
	sources, err := source.New(source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{}
	c.of.Store(&Reconciler{Client: o, Sources: sources})
	return c
}

func TestStateOfStacks(t *testing.T) {
	const want = `
# HELP chandler_stack_addon_clusters Number of clusters of a stack on which an add-on is in a phase.
# TYPE chandler_stack_addon_clusters gauge
chandler_stack_addon_clusters{addon="cni",namespace="team",phase="Degraded",stack="platform"} 0
chandler_stack_addon_clusters{addon="cni",namespace="team",phase="Failed",stack="platform"} 2
chandler_stack_addon_clusters{addon="cni",namespace="team",phase="Installing",stack="platform"} 0
chandler_stack_addon_clusters{addon="cni",namespace="team",phase="Pending",stack="platform"} 0
chandler_stack_addon_clusters{addon="cni",namespace="team",phase="Ready",stack="platform"} 8
chandler_stack_addon_clusters{addon="cni",namespace="team",phase="Removing",stack="platform"} 0
chandler_stack_addon_clusters{addon="cni",namespace="team",phase="Unassigned",stack="platform"} 0
chandler_stack_addon_clusters{addon="cni",namespace="team",phase="Upgrading",stack="platform"} 0
chandler_stack_addon_clusters{addon="dns",namespace="team",phase="Degraded",stack="platform"} 0
chandler_stack_addon_clusters{addon="dns",namespace="team",phase="Failed",stack="platform"} 0
chandler_stack_addon_clusters{addon="dns",namespace="team",phase="Installing",stack="platform"} 0
chandler_stack_addon_clusters{addon="dns",namespace="team",phase="Pending",stack="platform"} 0
chandler_stack_addon_clusters{addon="dns",namespace="team",phase="Ready",stack="platform"} 10
chandler_stack_addon_clusters{addon="dns",namespace="team",phase="Removing",stack="platform"} 0
chandler_stack_addon_clusters{addon="dns",namespace="team",phase="Unassigned",stack="platform"} 0
chandler_stack_addon_clusters{addon="dns",namespace="team",phase="Upgrading",stack="platform"} 0
# HELP chandler_stack_clusters Number of clusters of a stack by state: ready, progressing, failed, waiting, unstarted, or held, which counts beside the others.
# TYPE chandler_stack_clusters gauge
chandler_stack_clusters{namespace="team",stack="gone",state="held"} 1
chandler_stack_clusters{namespace="team",stack="platform",state="failed"} 2
chandler_stack_clusters{namespace="team",stack="platform",state="held"} 1
chandler_stack_clusters{namespace="team",stack="platform",state="progressing"} 0
chandler_stack_clusters{namespace="team",stack="platform",state="ready"} 8
chandler_stack_clusters{namespace="team",stack="platform",state="unstarted"} 0
chandler_stack_clusters{namespace="team",stack="platform",state="waiting"} 0
`
	o := fleetOf(10)
	held := &addonsv1.HeldRemoval{}
	o.clusters[3].Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", HeldRemoval: held}, {Name: "gone", HeldRemoval: held}}
	c := collectorOf(t, o)
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), "chandler_stack_clusters", "chandler_stack_addon_clusters"); err != nil {
		t.Error(err)
	}
	if got := testutil.CollectAndCount(c, "chandler_stack_condition"); got != 4*3 {
		t.Errorf("%d series of conditions", got)
	}
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// However many clusters a stack has, its series are as many.
func TestStatesDontGrowWithClusters(t *testing.T) {
	few, many := testutil.CollectAndCount(collectorOf(t, fleetOf(10))), testutil.CollectAndCount(collectorOf(t, fleetOf(1000)))
	if few != many || few == 0 {
		t.Errorf("%d series with 10 clusters, %d with 1,000", few, many)
	}
}

// However many stacks a namespace has, its series are limited, and those of others are there.
func TestStatesOfANamespaceAreLimited(t *testing.T) {
	o := fleetOf(0)
	for i := range 2 * maxSources {
		s := addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "attacker", Name: fmt.Sprint("stack-", i)}}
		o.stacks = append(o.stacks, s)
	}
	if got := testutil.CollectAndCount(collectorOf(t, o), "chandler_stack_clusters"); got != (maxSources+1)*6 {
		t.Errorf("%d series, want those of %d stacks and one more", got, maxSources)
	}
}
