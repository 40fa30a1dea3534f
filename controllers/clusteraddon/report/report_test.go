// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/report"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/upgrade"
	"github.com/cluster-chandler/chandler/test/addons"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestSince has an add-on and its stack that change, or don't.
func TestSince(t *testing.T) {
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := then.Add(time.Hour + time.Millisecond)
	type seen struct {
		phase            addonsv1.AddonPhase
		reason, revision string
		unresolved       map[string]gather.Unresolved
		uid              string
	}
	undecided := func(s gather.Unresolved) map[string]gather.Unresolved {
		return map[string]gather.Unresolved{"platform": s}
	}
	was := seen{phase: addonsv1.AddonReady, revision: "platform-1"}
	for name, tc := range map[string]struct {
		is               seen
		addonNow         bool // since is now
		stackNow         bool
		state            addonsv1.StackState
		neverNoted, none bool // by the version before; there was no status
		isPart           bool // not all add-ons were looked at
	}{
		"nothing changes":              {is: was, state: addonsv1.StackReady},
		"it upgrades":                  {is: seen{phase: addonsv1.AddonUpgrading, revision: "platform-2"}, addonNow: true, stackNow: true, state: addonsv1.StackProgressing},
		"it goes":                      {is: seen{phase: addonsv1.AddonRemoving, revision: "platform-1"}, addonNow: true, stackNow: true, state: addonsv1.StackProgressing},
		"it waits":                     {is: seen{phase: addonsv1.AddonPending, revision: "platform-1"}, addonNow: true, stackNow: true, state: addonsv1.StackPending},
		"it fails":                     {is: seen{phase: addonsv1.AddonFailed, reason: "HookFailed", revision: "platform-1"}, addonNow: true, stackNow: true, state: addonsv1.StackFailed},
		"its source is down":           {is: seen{phase: addonsv1.AddonReady, reason: "SourceUnavailable", revision: "platform-1"}, addonNow: true, state: addonsv1.StackReady},
		"a revision changes nothing":   {is: seen{phase: addonsv1.AddonReady, revision: "platform-2"}, stackNow: true, state: addonsv1.StackReady},
		"its stack can't be read":      {is: seen{phase: addonsv1.AddonReady, revision: "platform-1", unresolved: undecided(gather.Unresolved{State: decide.Undecided})}, stackNow: true, state: addonsv1.StackUnknown},
		"it can't for a moment":        {is: seen{phase: addonsv1.AddonReady, revision: "platform-1", unresolved: undecided(gather.Unresolved{State: decide.Undecided, IsNew: true})}, state: addonsv1.StackReady},
		"a new one, for a moment":      {is: seen{phase: addonsv1.AddonReady, revision: "platform-2", unresolved: undecided(gather.Unresolved{State: decide.Undecided, IsNew: true})}, stackNow: true, state: addonsv1.StackProgressing},
		"its removal is held":          {is: seen{phase: addonsv1.AddonReady, revision: "platform-1", unresolved: undecided(gather.Unresolved{State: decide.Held})}, state: addonsv1.StackReady},
		"nobody wants it":              {is: seen{phase: addonsv1.AddonUnassigned, revision: "platform-1"}, addonNow: true, stackNow: true, state: addonsv1.StackUnknown},
		"its record isn't proven":      {is: seen{phase: addonsv1.AddonUnassigned, reason: "StackUnknown", revision: "platform-1"}, addonNow: true, state: addonsv1.StackReady},
		"the status is from a backup":  {is: seen{phase: addonsv1.AddonReady, revision: "platform-1", uid: "other"}, addonNow: true, stackNow: true, state: addonsv1.StackReady},
		"an older version made it":     {is: was, neverNoted: true, stackNow: true, state: addonsv1.StackReady},
		"there was nothing before it":  {is: was, none: true, addonNow: true, stackNow: true, state: addonsv1.StackReady},
		"an unread stack is there now": {is: seen{phase: addonsv1.AddonReady, unresolved: undecided(gather.Unresolved{State: decide.Undecided, IsNew: true})}, none: true, addonNow: true, stackNow: true, state: addonsv1.StackUnknown},
		"nobody looked at all of it":   {is: seen{phase: addonsv1.AddonUpgrading, revision: "platform-1"}, isPart: true, addonNow: true, state: addonsv1.StackReady},
		"nor at all of a new revision": {is: seen{phase: addonsv1.AddonReady, revision: "platform-2"}, isPart: true, stackNow: true, state: addonsv1.StackProgressing},
		"nor at what can't be read":    {is: seen{phase: addonsv1.AddonReady, revision: "platform-2", unresolved: undecided(gather.Unresolved{State: decide.Undecided})}, isPart: true, stackNow: true, state: addonsv1.StackUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			statusOf := func(s seen) *addonsv1.ClusterAddonStatus {
				status := &addonsv1.ClusterAddonStatus{ObservedUID: "own"}
				status.Addons = []addonsv1.AddonStatus{{Name: "web", Namespace: "default", Stack: "platform", Phase: s.phase, Reason: s.reason}}
				status.Stacks = []addonsv1.StackStatus{{Name: "platform", Revision: s.revision, State: addonsv1.StackReady, Since: metav1.NewTime(then)}}
				return status
			}
			before, after := statusOf(was), statusOf(tc.is)
			before.Addons[0].Since = metav1.NewTime(then)
			if tc.is.uid != "" {
				after.ObservedUID = "other"
			}
			if tc.neverNoted {
				before.Addons[0].Since, before.Stacks[0].Since, before.Stacks[0].State = metav1.Time{}, metav1.Time{}, ""
			}
			if tc.none {
				before = &addonsv1.ClusterAddonStatus{}
			}
			report.NoteSince(before, after, now)
			stacks := report.StackStates(before, after, []addonsv1.StackRevision{{Name: "platform", Revision: tc.is.revision}}, tc.is.unresolved, !tc.isPart, now)
			of := func(isNow bool) time.Time {
				switch {
				case isNow:
					return then.Add(time.Hour)
				case tc.neverNoted:
					return time.Time{}
				}
				return then
			}
			if got := after.Addons[0].Since.Time; !got.Equal(of(tc.addonNow)) {
				t.Errorf("the add-on is so since %s", got)
			}
			if len(stacks) != 1 || stacks[0].State != tc.state || !stacks[0].Since.Time.Equal(of(tc.stackNow)) {
				t.Errorf("the stack is %+v", stacks)
			}
		})
	}
}

// A rollout asks since when a cluster works on a revision, and whether it was well before.
func TestStartOf(t *testing.T) {
	then, now := metav1.NewTime(time.Unix(1e9, 0)), metav1.NewTime(time.Unix(1e9+60, 0))
	stack := func(revision string, state addonsv1.StackState, wasReady *bool) addonsv1.StackStatus {
		return addonsv1.StackStatus{Name: "platform", Revision: revision, State: state, Since: then, Started: then, WasReady: wasReady}
	}
	phases := map[addonsv1.StackState]addonsv1.AddonPhase{
		addonsv1.StackPending: addonsv1.AddonPending, addonsv1.StackProgressing: addonsv1.AddonUpgrading, addonsv1.StackReady: addonsv1.AddonReady,
	}
	had := func(previous string, is addonsv1.StackStatus) addonsv1.StackStatus {
		is.Previous = previous
		return is
	}
	for name, tc := range map[string]struct {
		was      addonsv1.StackStatus
		is       addonsv1.StackState
		revision string
		started  metav1.Time
		wasReady *bool
		previous string
	}{
		"the first revision":                  {was: addonsv1.StackStatus{}, is: addonsv1.StackPending, revision: "1", started: now},
		"none before":                         {was: stack("", addonsv1.StackUnknown, nil), is: addonsv1.StackPending, revision: "1", started: now},
		"it continues":                        {was: stack("1", addonsv1.StackProgressing, ptr.To(true)), is: addonsv1.StackPending, revision: "1", started: then, wasReady: ptr.To(true)},
		"it becomes ready":                    {was: stack("1", addonsv1.StackProgressing, ptr.To(false)), is: addonsv1.StackReady, revision: "1", started: then, wasReady: ptr.To(false)},
		"it works on the same revision again": {was: stack("1", addonsv1.StackReady, ptr.To(false)), is: addonsv1.StackProgressing, revision: "1", started: now, wasReady: ptr.To(false)},
		"it was ready":                        {was: stack("1", addonsv1.StackReady, ptr.To(false)), is: addonsv1.StackProgressing, revision: "2", started: now, wasReady: ptr.To(true), previous: "1"},
		"it had failed after another one":     {was: had("0", stack("1", addonsv1.StackFailed, ptr.To(true))), is: addonsv1.StackProgressing, revision: "2", started: now, wasReady: ptr.To(false), previous: "0"},
		"it goes back":                        {was: had("0", stack("1", addonsv1.StackFailed, ptr.To(true))), is: addonsv1.StackProgressing, revision: "0", started: now, wasReady: ptr.To(true)},
		"it continues after another one":      {was: had("0", stack("1", addonsv1.StackProgressing, ptr.To(true))), is: addonsv1.StackReady, revision: "1", started: then, wasReady: ptr.To(true), previous: "0"},
		"it had failed":                       {was: stack("1", addonsv1.StackFailed, ptr.To(true)), is: addonsv1.StackProgressing, revision: "2", started: now, wasReady: ptr.To(false)},
		"it wasn't ready any more":            {was: stack("1", addonsv1.StackDegraded, ptr.To(true)), is: addonsv1.StackProgressing, revision: "2", started: now, wasReady: ptr.To(false)},
		"it hadn't come far":                  {was: stack("1", addonsv1.StackProgressing, ptr.To(true)), is: addonsv1.StackProgressing, revision: "2", started: now, wasReady: ptr.To(true)},
	} {
		t.Run(name, func(t *testing.T) {
			before := &addonsv1.ClusterAddonStatus{Stacks: []addonsv1.StackStatus{tc.was}}
			after := &addonsv1.ClusterAddonStatus{Addons: []addonsv1.AddonStatus{{Stack: "platform", Phase: phases[tc.is]}}}
			is := report.StackStates(before, after, []addonsv1.StackRevision{{Name: "platform", Revision: tc.revision}}, nil, true, now.Time)[0]
			started, wasReady, previous := is.Started, is.WasReady, is.Previous
			if previous != tc.previous || !started.Equal(&tc.started) || (wasReady == nil) != (tc.wasReady == nil) || wasReady != nil && *wasReady != *tc.wasReady {
				t.Errorf("since %s, was ready %v at %s", started, wasReady, previous)
			}
		})
	}
}

// The time of a pause doesn't count as time in which a revision wasn't ready.
func TestStartAfterPause(t *testing.T) {
	then, now := time.Unix(1e9, 0), time.Unix(1e9+7200, 0)
	status := func(reason string) *addonsv1.ClusterAddonStatus {
		return &addonsv1.ClusterAddonStatus{
			Stacks: []addonsv1.StackStatus{{Name: "platform", Revision: "1", State: addonsv1.StackPending, Since: metav1.NewTime(then), Started: metav1.NewTime(then), WasReady: ptr.To(true)}},
			Addons: []addonsv1.AddonStatus{{Name: "web", Stack: "platform", Phase: addonsv1.AddonPending, Reason: reason}},
		}
	}
	for name, tc := range map[string]struct {
		was, is string
		want    time.Time
	}{
		"it is resumed":      {reasons.StackPaused, reasons.WaitingForDependency, now},
		"it is paused":       {reasons.WaitingForDependency, reasons.StackPaused, then},
		"it stays paused":    {reasons.StackPaused, reasons.StackPaused, then},
		"it was never so":    {"", reasons.WaitingForDependency, then},
		"it is of one stack": {reasons.WaitingForPrecondition, "", then},
	} {
		is := report.StackStates(status(tc.was), status(tc.is), []addonsv1.StackRevision{{Name: "platform", Revision: "1"}}, nil, true, now)
		if got := is[0]; !got.Started.Time.Equal(tc.want) || !ptr.Deref(got.WasReady, false) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// An add-on is in the status before anything of it is in its cluster. A manager that dies in between would else not know that this
// ClusterAddon has run it.
func TestAnnounce(t *testing.T) {
	web := addons.Wanted("platform", "web")
	web.Spec.ServiceAccountName = "deployer"
	known := web.Status()
	known.Phase = addonsv1.AddonReady
	change := func(change func(*addonsv1.AddonStatus)) addonsv1.AddonStatus { s := known; change(&s); return s }
	for name, tc := range map[string]struct {
		before  []addonsv1.AddonStatus
		uid     types.UID // that the status is about
		written bool
		phase   addonsv1.AddonPhase
	}{
		"it is new":                     {nil, "own", true, addonsv1.AddonPending},
		"it is known":                   {[]addonsv1.AddonStatus{known}, "own", false, addonsv1.AddonReady},
		"a backup's status knows it":    {[]addonsv1.AddonStatus{known}, "other", true, addonsv1.AddonReady},
		"a record alone told of it":     {[]addonsv1.AddonStatus{change(func(s *addonsv1.AddonStatus) { s.Reason = reasons.StackUnknown })}, "own", true, addonsv1.AddonReady},
		"it gets another account":       {[]addonsv1.AddonStatus{change(func(s *addonsv1.AddonStatus) { s.ServiceAccountName = "" })}, "own", true, addonsv1.AddonReady},
		"it is another stack's by then": {[]addonsv1.AddonStatus{change(func(s *addonsv1.AddonStatus) { s.Stack = "other" })}, "own", true, ""},
	} {
		c := addons.Given(t)
		c.ClusterAddon.UID, c.ClusterAddon.Status.ObservedUID, c.ClusterAddon.Status.Addons = "own", tc.uid, tc.before
		c.Wanted = []wanted.Addon{web}
		q := report.Report{Observed: &c.Observed, Stored: c.ClusterAddon.DeepCopy(), Memory: &report.Memory{}}
		written := q.Announce(false)
		at := result.IndexOf(c.ClusterAddon.Status.Addons, known)
		if written != tc.written || at < 0 {
			t.Errorf("%s: written %t: %+v", name, written, c.ClusterAddon.Status.Addons)
			continue
		}
		if is := c.ClusterAddon.Status.Addons[at]; is.Reason != "" || is.ServiceAccountName != "deployer" || tc.phase != "" && is.Phase != tc.phase {
			t.Errorf("%s: %+v", name, is)
		}
	}
}

// The status is about a generation only once all of it was looked at.
func TestGenerationThatWasSeen(t *testing.T) {
	for _, isWhole := range []bool{true, false} {
		c := addons.Given(t)
		c.ClusterAddon.Generation, c.ClusterAddon.Status.ObservedGeneration = 2, 1
		report.Report{Observed: &c.Observed, Stored: c.ClusterAddon.DeepCopy(), Cluster: &member.Member{}, Memory: &report.Memory{}}.Finish(result.All{}, nil, isWhole, c.Now)
		if seen := c.ClusterAddon.Status.ObservedGeneration == 2; seen != isWhole {
			t.Errorf("all was looked at: %t: the status is about generation %d", isWhole, c.ClusterAddon.Status.ObservedGeneration)
		}
	}
}

// However many names of add-ons tenants make up, the series of holds are limited.
func TestSeriesOfHoldsAreLimited(t *testing.T) {
	long.InCI(t)
	const most = 256
	for i := range 2 * most {
		c := addons.Given(t)
		a := addons.Wanted("platform", fmt.Sprint("addon-", i))
		a.Lifecycle = &addonsv1.AddonLifecycle{Upgrade: addonsv1.UpgradeBeforeControlPlane}
		c.Wanted, c.Upgrade = []wanted.Addon{a}, &upgrade.Upgrade{From: "v1.24.0", Reached: "v1.24.0", Target: "v1.25.0", Step: "v1.25.0", Steps: []string{"v1.25.0"}}
		report.Report{Observed: &c.Observed, Stored: c.ClusterAddon.DeepCopy(), Cluster: &member.Member{}, Memory: &report.Memory{}}.Finish(result.All{}, nil, true, c.Now)
	}
	if got, err := testutil.GatherAndCount(metrics.Registry, "chandler_upgrade_holds_total"); got < 2 || got > most+1 || err != nil {
		t.Errorf("%d series: %v", got, err)
	}
}
