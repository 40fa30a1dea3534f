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
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/must"
)

// Each source of a stack has its series, as long as the stack is there.
func TestSeriesOfSources(t *testing.T) {
	r, s, _ := bundled(t)
	if _, err := r.Sources.OpenBundle(t.Context(), s.Namespace, s.Spec.Source); err != nil {
		t.Fatal(err)
	}
	s.Spec.Addons = []addonsv1.Addon{
		{Name: "cni", Chart: addonsv1.ChartSource{Path: "cni"}}, // the bundle's
		{Name: "dns", Chart: addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: "oci://127.0.0.1:9/dns"}, Version: "1.0.0"}},
		{Name: "new", Chart: addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: "oci://127.0.0.1:9/new"}, Version: "1.0.0"}},
	}
	dns := reference.AddonOf(s.Namespace, &s.Spec.Addons[1], s.Spec.Source)
	if _, err := r.Sources.Resolve(t.Context(), dns); err == nil {
		t.Error("there is no such host")
	}
	r.Client = objects{stacks: []addonsv1.AddonStack{*s}}
	c := &collector{}
	c.of.Store(r)
	const want = `
# HELP chandler_stack_source_checks_total Number of times that a source of a stack was looked at, by result: Success, or why it failed.
# TYPE chandler_stack_source_checks_total counter
chandler_stack_source_checks_total{addon="dns",namespace="team",result="ArtifactRefused",stack="platform"} 1
chandler_stack_source_checks_total{addon="spec.source",namespace="team",result="Success",stack="platform"} 2
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), "chandler_stack_source_checks_total"); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]int{
		"chandler_stack_source_check_duration_seconds":         2,
		"chandler_stack_source_bytes_total":                    2,
		"chandler_stack_source_last_check_timestamp_seconds":   2,
		"chandler_stack_source_last_success_timestamp_seconds": 1,
	} {
		if got := testutil.CollectAndCount(c, name); got != want {
			t.Errorf("%d series of %s, want %d", got, name, want)
		}
	}
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	r.Client = objects{}
	if got := testutil.CollectAndCount(c); got != 0 {
		t.Errorf("%d series of a stack that is gone", got)
	}
}

// However many stacks a namespace has, its series are limited, and those of others are there.
func TestSeriesOfANamespaceAreLimited(t *testing.T) {
	r, s, _ := bundled(t)
	if _, err := r.Sources.OpenBundle(t.Context(), s.Namespace, s.Spec.Source); err != nil {
		t.Fatal(err)
	}
	var stacks []addonsv1.AddonStack
	for i := range 2 * maxSources {
		another := s.DeepCopy()
		another.Name = fmt.Sprint("stack-", i)
		stacks = append(stacks, *another)
	}
	other := s.DeepCopy()
	other.Namespace = "victim"
	if _, err := r.Sources.OpenBundle(t.Context(), other.Namespace, other.Spec.Source); err != nil {
		t.Fatal(err)
	}
	r.Client = objects{stacks: append(stacks, *other)}
	c := &collector{}
	c.of.Store(r)
	if got := testutil.CollectAndCount(c, "chandler_stack_source_bytes_total"); got != maxSources+1 {
		t.Errorf("%d series, want %d and that of another namespace", got, maxSources)
	}
	if got := testutil.CollectAndCount(c, "chandler_stack_clusters"); got != (maxSources+1)*6 {
		t.Errorf("%d series, want those of %d stacks and one more", got, maxSources)
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

func collectorOf(t *testing.T, o objects) *collector {
	t.Helper()
	sources, err := source.New(source.Options{})
	must.Succeed(t, err)
	c := &collector{}
	c.of.Store(&Reconciler{Client: o, Sources: sources})
	return c
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
