// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/report"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// A status that tells of progress alone may wait a moment. One that tells how something ended may not.
func TestIsProgress(t *testing.T) {
	const installing, ready = addonsv1.AddonInstalling, addonsv1.AddonReady
	of := func(phases ...addonsv1.AddonPhase) *addonsv1.ClusterAddon {
		ca := &addonsv1.ClusterAddon{}
		for i, phase := range phases {
			ca.Status.Addons = append(ca.Status.Addons, addonIn(string(rune('a'+i)), phase, "", string(phase)))
		}
		report.WriteAddons(ca, ca.Status.Addons, nil, nil)
		report.Summarize(ca)
		return ca
	}
	for name, tc := range map[string]struct {
		before, after []addonsv1.AddonPhase
		change        func(*addonsv1.ClusterAddonStatus)
		want          bool
	}{
		"nothing changed":             {before: []addonsv1.AddonPhase{installing}, after: []addonsv1.AddonPhase{installing}},
		"objects become ready":        {before: []addonsv1.AddonPhase{installing}, after: []addonsv1.AddonPhase{installing}, change: func(s *addonsv1.ClusterAddonStatus) { s.Addons[0].Message = "1 of 2" }, want: true},
		"one of two is ready":         {before: []addonsv1.AddonPhase{installing, installing}, after: []addonsv1.AddonPhase{ready, installing}, want: true},
		"with a change to tell":       {before: []addonsv1.AddonPhase{installing, installing}, after: []addonsv1.AddonPhase{ready, installing}, change: func(s *addonsv1.ClusterAddonStatus) { s.History = []addonsv1.AddonChange{{Addon: "a"}} }, want: true},
		"it begins":                   {before: []addonsv1.AddonPhase{addonsv1.AddonUpgrading, addonsv1.AddonRemoving}, after: []addonsv1.AddonPhase{installing, installing}, want: true},
		"the last one is ready":       {before: []addonsv1.AddonPhase{ready, installing}, after: []addonsv1.AddonPhase{ready, ready}},
		"one fails":                   {before: []addonsv1.AddonPhase{installing, installing}, after: []addonsv1.AddonPhase{addonsv1.AddonFailed, installing}},
		"one is degraded":             {before: []addonsv1.AddonPhase{installing, ready}, after: []addonsv1.AddonPhase{installing, addonsv1.AddonDegraded}},
		"one that was ready is begun": {before: []addonsv1.AddonPhase{ready, installing}, after: []addonsv1.AddonPhase{addonsv1.AddonUpgrading, installing}},
		"one that failed is begun":    {before: []addonsv1.AddonPhase{addonsv1.AddonFailed}, after: []addonsv1.AddonPhase{installing}},
		"one comes":                   {before: []addonsv1.AddonPhase{installing}, after: []addonsv1.AddonPhase{installing, installing}},
		"a ready one drifts":          {before: []addonsv1.AddonPhase{ready, installing}, after: []addonsv1.AddonPhase{ready, installing}, change: func(s *addonsv1.ClusterAddonStatus) { s.Addons[0].Drift = &addonsv1.AddonDrift{Objects: 1} }},
		"another add-on":              {before: []addonsv1.AddonPhase{installing}, after: []addonsv1.AddonPhase{installing}, change: func(s *addonsv1.ClusterAddonStatus) { s.Addons[0].Name = "other" }},
		"the spec is seen":            {before: []addonsv1.AddonPhase{installing}, after: []addonsv1.AddonPhase{installing}, change: func(s *addonsv1.ClusterAddonStatus) { s.ObservedGeneration = 2 }},
		"a stack is ready": {before: []addonsv1.AddonPhase{installing, installing}, after: []addonsv1.AddonPhase{ready, installing}, change: func(s *addonsv1.ClusterAddonStatus) {
			s.Stacks = []addonsv1.StackStatus{{Name: "one", State: addonsv1.StackReady}}
		}},
		"a gate opens": {before: []addonsv1.AddonPhase{installing}, after: []addonsv1.AddonPhase{installing}, change: func(s *addonsv1.ClusterAddonStatus) { s.Upgrade = &addonsv1.ClusterUpgrade{} }},
		"the cluster is silent": {before: []addonsv1.AddonPhase{installing}, after: []addonsv1.AddonPhase{installing}, change: func(s *addonsv1.ClusterAddonStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: addonsv1.ClusterReachableCondition, Status: metav1.ConditionFalse})
		}},
		"it waits for what comes":   {before: []addonsv1.AddonPhase{installing}, after: []addonsv1.AddonPhase{addonsv1.AddonPending}, change: func(s *addonsv1.ClusterAddonStatus) { s.Addons[0].Reason = reasons.Retrying }, want: true},
		"it waits for somebody":     {before: []addonsv1.AddonPhase{installing}, after: []addonsv1.AddonPhase{addonsv1.AddonPending}, change: func(s *addonsv1.ClusterAddonStatus) { s.Addons[0].Reason = failure.SignatureMissing }},
		"it is left, as none knows": {before: []addonsv1.AddonPhase{installing}, after: []addonsv1.AddonPhase{addonsv1.AddonUnassigned}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := of(tc.before...), of(tc.after...)
			same := metav1.NewTime(time.Unix(0, 0)) // as conditions that stay have theirs
			for _, ca := range []*addonsv1.ClusterAddon{before, after} {
				for i := range ca.Status.Conditions {
					ca.Status.Conditions[i].LastTransitionTime = same
				}
			}
			if tc.change != nil {
				tc.change(&after.Status)
			}
			if got := report.IsProgress(&before.Status, &after.Status); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// Add-ons that become ready beside each other are told of in one event, and failures at once.
func TestOneEventOfAClusterThatIsReady(t *testing.T) {
	known, before := &report.Memory{}, &addonsv1.ClusterAddon{}
	tell := func(phases map[string]addonsv1.AddonPhase) (told []string) {
		after := &addonsv1.ClusterAddon{}
		for _, name := range []string{"a", "b", "c"} {
			if phase := phases[name]; phase != "" {
				s := addonIn(name, phase, "", "why")
				if phase == addonsv1.AddonFailed {
					s.Reason = "HookFailed"
				}
				s.Revision, s.Version = 1, "1.0.0"
				after.Status.Addons = append(after.Status.Addons, s)
			}
		}
		for _, e := range known.Events(before, after) {
			told = append(told, e.Reason+" "+e.Note)
		}
		before = after
		return told
	}
	const installing, ready, failed = addonsv1.AddonInstalling, addonsv1.AddonReady, addonsv1.AddonFailed
	type phases = map[string]addonsv1.AddonPhase
	for i, step := range []struct {
		are  phases
		want []string // each event has these words
	}{
		{phases{"a": installing, "b": installing, "c": installing}, nil},
		{phases{"a": ready, "b": installing, "c": installing}, nil},
		{phases{"a": ready, "b": installing, "c": failed}, []string{"HookFailed"}},
		{phases{"a": ready, "b": ready, "c": failed}, []string{"AddonReady 2 add-ons are ready: Installed add-on a 1.0.0 | Installed add-on b 1.0.0"}},
		{phases{"a": ready, "b": ready, "c": failed}, nil},
		{phases{"a": ready, "b": ready, "c": ready}, []string{"AddonReady Installed add-on c 1.0.0"}},
		{phases{"a": ready, "b": addonsv1.AddonUpgrading, "c": addonsv1.AddonDegraded}, []string{"Add-on c is degraded"}},
		{phases{"a": ready, "b": addonsv1.AddonUpgrading, "c": ready}, nil},
		{phases{"a": ready, "b": addonsv1.AddonUpgrading, "c": addonsv1.AddonDegraded}, []string{"Add-on c is degraded"}},
		{phases{"a": ready, "b": addonsv1.AddonUpgrading, "c": ready}, nil},
		{phases{"b": ready, "c": ready}, []string{"AddonReady 2 add-ons are ready: Healthy again: add-on c 1.0.0 | add-on b 1.0.0"}},
	} {
		told := tell(step.are)
		same := slices.EqualFunc(told, step.want, func(got, want string) bool {
			for part := range strings.SplitSeq(want, " | ") {
				if strings.Count(got, part) != 1 {
					return false
				}
			}
			return true
		})
		if !same {
			t.Errorf("step %d: told %q, want %q", i, told, step.want)
		}
	}
}
