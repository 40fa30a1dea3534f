// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/series"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// TestClosed has an add-on cni, and another one of a stack that says nothing about upgrades.
func TestClosed(t *testing.T) {
	const oldKinds = "apps/v1/Deployment,policy/v1beta1/PodDisruptionBudget"
	for name, tc := range map[string]struct {
		cni      addonsv1.AddonLifecycle
		rows     []addonsv1.ChartVersion
		kinds    string
		others   string // kinds of the other stack's add-on
		reason   string // of cni's status
		reached  string
		closed   string
		mentions string
	}{
		"nothing is said":         {cni: addonsv1.AddonLifecycle{Upgrade: "BeforeControlPlane"}},
		"a range":                 {cni: addonsv1.AddonLifecycle{KubernetesVersions: "<1.25"}, closed: "NoCompatibleVersion", mentions: "v1.25.0 isn't allowed by add-on cni of AddonStack platform"},
		"a range that ends later": {cni: addonsv1.AddonLifecycle{KubernetesVersions: "<1.26"}},
		"a step in the middle":    {cni: addonsv1.AddonLifecycle{KubernetesVersions: "!=1.24.x"}, reached: "v1.23.0", closed: "NoCompatibleVersion", mentions: "Kubernetes 1.24 isn't"},
		"no row":                  {rows: []addonsv1.ChartVersion{{Kubernetes: "1.24.x", Version: "1"}}, closed: "NoCompatibleVersion", mentions: "chart.versions 1.24.x"},
		"rows, none of which is for both": {cni: addonsv1.AddonLifecycle{Upgrade: "BeforeControlPlane"}, rows: []addonsv1.ChartVersion{{Kubernetes: "1.24.x", Version: "1"}, {Kubernetes: "1.25.x", Version: "2"}},
			closed: "NoCompatibleVersion", mentions: "for both Kubernetes v1.24.0 and v1.25.0"},
		"rows one after the other":      {cni: addonsv1.AddonLifecycle{Upgrade: "AfterControlPlane"}, rows: []addonsv1.ChartVersion{{Kubernetes: "1.24.x", Version: "1"}, {Kubernetes: "1.25.x", Version: "2"}}},
		"a kind that goes":              {cni: addonsv1.AddonLifecycle{Upgrade: "AfterWorkers"}, kinds: oldKinds, closed: "APIRemoved", mentions: "In its place is policy/v1/PodDisruptionBudget"},
		"in what is changed afterwards": {cni: addonsv1.AddonLifecycle{Upgrade: "AfterControlPlane"}, kinds: oldKinds, reason: reasons.WaitingForControlPlane},
		"in what nobody said":           {cni: addonsv1.AddonLifecycle{Upgrade: "BeforeControlPlane"}, others: oldKinds},
		"the control plane is upgraded": {cni: addonsv1.AddonLifecycle{KubernetesVersions: "<1.25"}, reached: "v1.25.0"},
	} {
		t.Run(name, func(t *testing.T) {
			u := &upgrade.Upgrade{From: "v1.24.0", Reached: "v1.24.0", Target: "v1.25.0", Step: "v1.25.0", Steps: []string{"v1.25.0"}}
			switch tc.reached {
			case "v1.25.0":
				u.Reached, u.Steps = tc.reached, nil
			case "v1.23.0":
				u.Reached, u.Steps = tc.reached, []string{"v1.24.0", "v1.25.0"}
			}
			cni := wanted.Addon{Stack: "platform", Addon: addonsv1.Addon{Name: "cni", Lifecycle: &tc.cni, Chart: addonsv1.ChartSource{OCI: &addonsv1.OCISource{}, Versions: tc.rows}}}
			other := wanted.Addon{Stack: "other", Addon: addonsv1.Addon{Name: "other"}}
			q := &clusterRun{proofs: &releases.Proofs{}, upgrade: u, installed: map[deliver.Release]deliver.Summary{cni.Release(): {Kinds: tc.kinds}, other.Release(): {Kinds: tc.others}}}
			q.wanted = []wanted.Addon{cni, other}
			for i := range q.wanted {
				q.wanted[i].Fit(u.Reached, u)
			}
			status := cni.Status()
			status.Reason = tc.reason
			got := q.gate().closed([]addonsv1.AddonStatus{status, other.Status()})
			if got.Reason != tc.closed || !strings.Contains(got.Message, tc.mentions) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestUnreadChart keeps a gate closed while nobody knows which versions of Kubernetes a chart is for.
func TestUnreadChart(t *testing.T) {
	cni := wanted.Addon{Stack: "platform", Addon: addonsv1.Addon{Name: "cni", Lifecycle: &addonsv1.AddonLifecycle{Upgrade: addonsv1.UpgradeBeforeControlPlane}}}
	added, other := wanted.Addon{Stack: "platform", Addon: addonsv1.Addon{Name: "added"}}, wanted.Addon{Stack: "other", Addon: addonsv1.Addon{Name: "other"}}
	u := &upgrade.Upgrade{From: "v1.24.0", Reached: "v1.24.0", Target: "v1.25.0", Step: "v1.25.0", Steps: []string{"v1.25.0"}}
	ready := func(a wanted.Addon) addonsv1.AddonStatus {
		status := a.Status()
		status.Phase = addonsv1.AddonReady
		return status
	}
	for name, tc := range map[string]struct {
		spec string // of the record of the add-on that was added
		want int
	}{
		"it isn't installed":     {"", 1},
		"another chart of it is": {"sha256:other", 1},
		"its chart was read":     {added.SpecDigest(), 0},
	} {
		t.Run(name, func(t *testing.T) {
			q := &clusterRun{upgrade: u, proofs: &releases.Proofs{}, ca: &addonsv1.ClusterAddon{}, stored: &addonsv1.ClusterAddon{}, stacks: stacks{wanted: []wanted.Addon{cni, added, other}}, installed: map[deliver.Release]deliver.Summary{
				cni.Release(): {Terms: deliver.Terms{Spec: cni.SpecDigest()}}, added.Release(): {Terms: deliver.Terms{Spec: tc.spec}},
			}}
			pending := added.Status()
			if tc.spec != "" {
				pending = ready(added)
			}
			got := q.gate().causes([]addonsv1.AddonStatus{ready(cni), pending})
			if len(got.Waiting) != tc.want || tc.want > 0 && (got.Waiting[0].Addon != "added" || got.Waiting[0].Point != addonsv1.UpgradeBeforeControlPlane) {
				t.Errorf("%+v", got.Waiting)
			}
		})
	}
}

// However many names of add-ons tenants make up, the series of holds are limited.
func TestSeriesOfHoldsAreLimited(t *testing.T) {
	point := addonsv1.UpgradeBeforeControlPlane
	held := &addonsv1.ClusterUpgrade{Gates: []addonsv1.UpgradeGate{{Point: point, State: addonsv1.GateWaiting}}}
	for i := range 2 * maxHolders {
		countHolds(nil, held, upgrade.Causes{Waiting: []upgrade.Cause{{Point: point, Addon: fmt.Sprint("addon-", i)}}}, time.Now())
	}
	if got := testutil.CollectAndCount(upgradeHolds); got > maxHolders+1 {
		t.Errorf("%d series", got)
	}
	if got := testutil.ToFloat64(upgradeHolds.WithLabelValues(string(point), series.Other)); got < maxHolders {
		t.Errorf("%v holds of others", got)
	}
}

// TestUpgradesWaitForAssignments has a class and a version set at once: Cluster API asks before the stack of the new class
// is assigned.
func TestUpgradesWaitForAssignments(t *testing.T) {
	const previous, next = "previous", "next"
	now, release := time.Unix(1000, 0), addonsv1.AddonLifecycle{Upgrade: addonsv1.UpgradeBeforeControlPlane}
	of := func(class string, generation int64) addonsv1.AddonStack {
		s := addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "of-" + class, Generation: generation}}
		s.Spec = addonsv1.AddonStackSpec{ClassNames: []string{class}, Addons: []addonsv1.Addon{{Name: "cni", Lifecycle: &release}}}
		return s
	}
	all := addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "all"}}
	all.Spec.ClusterSelector = &metav1.LabelSelector{}
	deleted := of(next, 1)
	deleted.DeletionTimestamp = &metav1.Time{Time: now}
	for name, tc := range map[string]struct {
		class   string // of the Cluster
		written []addonsv1.AddonStack
		since   time.Duration
		want    string
	}{
		"nothing changed":                         {previous, []addonsv1.AddonStack{of(previous, 1), of(next, 1)}, 0, ""},
		"another class is set":                    {next, []addonsv1.AddonStack{of(previous, 1)}, 0, "of-previous"},
		"another class is set, which has a stack": {next, []addonsv1.AddonStack{of(previous, 1), of(next, 1)}, 0, "of-previous, of-next"},
		"another stack selects it, too":           {previous, []addonsv1.AddonStack{of(previous, 1), all}, 0, "all"},
		"that one is being deleted":               {next, []addonsv1.AddonStack{deleted}, 0, ""},
		"the stack was changed":                   {previous, []addonsv1.AddonStack{of(previous, 2)}, 0, "of-previous"},
		"it was, and its rollout isn't here":      {previous, []addonsv1.AddonStack{of(previous, 2)}, assignmentGrace, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}
			cluster.Spec.Topology.ClassRef.Name = tc.class
			own := of(previous, 1)
			q := &clusterRun{
				proofs: &releases.Proofs{},
				ca:     &addonsv1.ClusterAddon{}, stored: &addonsv1.ClusterAddon{}, cluster: member.OfCluster(cluster), now: now,
				upgrade:   &upgrade.Upgrade{From: "v1.24.0", Reached: "v1.24.0", Target: "v1.25.0", Step: "v1.25.0", Steps: []string{"v1.25.0"}},
				memory:    &memory{outdatedSince: map[string]time.Time{own.Name: now.Add(-tc.since)}},
				installed: map[deliver.Release]deliver.Summary{},
			}
			assigned := []assignedStack{{StackRevision: addonsv1.StackRevision{Name: own.Name, Revision: "1"}, written: &own, spec: &own.Spec, generation: 1}}
			q.stacks = resolveStacks(assigned, q.cluster, q.memory.outdatedSince, now)
			q.awaitAssignments(tc.written, assigned, q.cluster, q.memory.outdatedSince, now)
			if got := strings.Join(q.outdated, ", "); got != tc.want {
				t.Errorf("it waits for %q; want %q", got, tc.want)
			}
			ready := (&wanted.Addon{Stack: own.Name, Addon: own.Spec.Addons[0]}).Status()
			ready.Phase = addonsv1.AddonReady
			if got := q.gate().causes([]addonsv1.AddonStatus{ready}).Waiting; len(got) != len(q.outdated) {
				t.Errorf("it waits for %+v", got)
			}
		})
	}
}
