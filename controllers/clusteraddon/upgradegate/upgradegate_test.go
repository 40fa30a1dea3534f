// SPDX-License-Identifier: Apache-2.0

package upgradegate_test

import (
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/upgradegate"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/upgrade"
	"github.com/cluster-chandler/chandler/test/addons"
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
			o := &gather.Observed{ClusterAddon: &addonsv1.ClusterAddon{}, Upgrade: u, Installed: map[deliver.Release]deliver.Summary{cni.Release(): {Kinds: tc.kinds}, other.Release(): {Kinds: tc.others}}}
			o.Wanted = []wanted.Addon{cni, other}
			for i := range o.Wanted {
				o.Wanted[i].Fit(u.Reached, u)
			}
			status := cni.Status()
			status.Reason = tc.reason
			got := upgradegate.Causes(o, []addonsv1.AddonStatus{status, other.Status()}).Closed
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
			o := &gather.Observed{Upgrade: u, ClusterAddon: &addonsv1.ClusterAddon{}, Stacks: gather.Stacks{Wanted: []wanted.Addon{cni, added, other}}, Installed: map[deliver.Release]deliver.Summary{
				cni.Release(): {Terms: deliver.Terms{Spec: cni.SpecDigest()}}, added.Release(): {Terms: deliver.Terms{Spec: tc.spec}},
			}}
			pending := added.Status()
			if tc.spec != "" {
				pending = ready(added)
			}
			got := upgradegate.Causes(o, []addonsv1.AddonStatus{ready(cni), pending})
			if len(got.Waiting) != tc.want || tc.want > 0 && (got.Waiting[0].Addon != "added" || got.Waiting[0].Point != addonsv1.UpgradeBeforeControlPlane) {
				t.Errorf("%+v", got.Waiting)
			}
		})
	}
}

// An upgrade of Kubernetes holds removals that haven't begun.
func TestUpgradeHoldsRemovals(t *testing.T) {
	record, going := addons.Installed("platform", "web"), addons.Installed("platform", "web")
	going.Status = deliver.StatusUninstalling
	for name, tc := range map[string]struct {
		upgrade *upgrade.Upgrade
		record  deliver.Summary
		absent  bool
		want    bool
	}{
		"there is none":                      {record: record},
		"it continues":                       {upgrade: &upgrade.Upgrade{}, record: record, want: true},
		"it is done":                         {upgrade: &upgrade.Upgrade{Done: true}, record: record},
		"the removal has begun":              {upgrade: &upgrade.Upgrade{}, record: going},
		"the add-on is there at other times": {upgrade: &upgrade.Upgrade{}, record: record, absent: true},
	} {
		o := &gather.Observed{Upgrade: tc.upgrade, Absent: map[string]bool{"platform/web": tc.absent}}
		if got := upgradegate.HoldsRemoval(o, tc.record); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
