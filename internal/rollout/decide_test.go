// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

// others returns another instance that is at a revision, with so many waves done.
func others(name, revision string, waves int32) []addonsv1.StackInstance {
	return []addonsv1.StackInstance{{WatchFilter: name, Rollout: &addonsv1.RolloutProgress{Revision: revision, WavesDone: waves}}}
}

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// at returns a cluster that has a revision in a state for some time.
func at(name, revision string, state addonsv1.StackState, ago time.Duration) rollout.Cluster {
	return rollout.Cluster{Name: name, Labels: labels.Set{"name": name}, Assigned: revision, GoesBackTo: "old", State: state, Since: now.Add(-ago), Started: now.Add(-ago), WasReady: true}
}

func without(c rollout.Cluster, why string, ago time.Duration) rollout.Cluster {
	c.Away, c.Unreachable, c.AwaySince = why, why == "ConnectionRefused", now.Add(-ago)
	return c
}

func unwell(c rollout.Cluster) rollout.Cluster {
	c.WasReady = false
	return c
}

// input has clusters that are to go from "old" to "new", by default one after the other.
func input(clusters ...rollout.Cluster) rollout.Input {
	return rollout.Input{
		Now: now, Target: "new", Clusters: clusters,
		Strategy: rollout.Strategy{
			Waves:       []rollout.Wave{{Name: "rest", MaxConcurrent: intstr.FromInt32(1)}},
			ReadyWithin: time.Hour,
		},
	}
}

// first adds a first wave of the clusters with a name.
func first(in rollout.Input, name string, change func(*rollout.Wave)) rollout.Input {
	wave := rollout.Wave{Name: "first", Selector: labels.SelectorFromSet(labels.Set{"name": name}), MaxConcurrent: intstr.FromInt32(1)}
	if change != nil {
		change(&wave)
	}
	in.Strategy.Waves = slices.Insert(slices.Clone(in.Strategy.Waves), 0, wave)
	return in
}

// held has clusters done once they were ready for ten minutes.
func held(in rollout.Input) rollout.Input {
	in.Strategy.MinReady = 10 * time.Minute
	return in
}

func with(in rollout.Input, changes ...func(*rollout.Input)) rollout.Input {
	for _, change := range changes {
		change(&in)
	}
	return in
}

// joined returns a cluster that came just now.
func joined(c rollout.Cluster) rollout.Cluster {
	c.Joined = now
	return c
}

// named returns a cluster with the label of another one.
func named(c rollout.Cluster, name string) rollout.Cluster {
	c.Labels = labels.Set{"name": name}
	return c
}

const (
	progressing = addonsv1.StackProgressing
	ready       = addonsv1.StackReady
	isFailed    = addonsv1.StackFailed
	degraded    = addonsv1.StackDegraded
)

func TestDecide(t *testing.T) {
	soaking := func(w *rollout.Wave) { w.Soak = time.Hour }
	approved := func(w *rollout.Wave) { w.NeedsApproval = true }
	old := at("b", "old", ready, time.Hour)
	begun := func(in *rollout.Input) { in.Began = now.Add(-2 * time.Hour) }
	halted := func(failed int) func(*rollout.Input) {
		return func(in *rollout.Input) { in.Halted = &rollout.Halt{Wave: "rest", Failed: failed} }
	}
	mayFail := func(n int32) func(*rollout.Input) {
		return func(in *rollout.Input) { in.Strategy.MaxFailed = intstr.FromInt32(n) }
	}
	rollsBack := func(in *rollout.Input) { in.Strategy.RollsBack = true }
	mode := func(mode rollout.Mode) func(*rollout.Input) {
		return func(in *rollout.Input) { in.Mode, in.Returned = mode, now.Add(-time.Minute) }
	}
	lastSoaks := func(in rollout.Input) rollout.Input {
		in.Strategy.Waves[0].Soak = time.Hour
		return in
	}
	for name, tc := range map[string]struct {
		in     rollout.Input
		phase  addonsv1.RolloutPhase
		start  []string
		reject bool
		next   time.Duration // from now
		// What is noted: a halt with so many failures, its end, and that the target is completed.
		halt      int
		resume    bool
		completed bool
	}{
		"no target":                         {in: with(input(old), func(in *rollout.Input) { in.Target = "" }), phase: addonsv1.RolloutHalted},
		"no clusters":                       {in: input(), phase: addonsv1.RolloutWaitingForClusters},
		"one at a time":                     {in: input(at("a", "old", ready, time.Hour), old), phase: addonsv1.RolloutProgressing, start: []string{"a"}},
		"none beside one on its way":        {in: input(at("a", "new", progressing, time.Minute), old), phase: addonsv1.RolloutProgressing, next: 59 * time.Minute},
		"the next after it":                 {in: input(at("a", "new", ready, 0), old), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"all have it":                       {in: input(at("a", "new", ready, 0)), phase: addonsv1.RolloutCompleted, completed: true},
		"those that aren't well come first": {in: input(old, at("a", "old", isFailed, time.Hour)), phase: addonsv1.RolloutProgressing, start: []string{"a"}},

		"the first wave":                   {in: first(input(at("a", "old", ready, 0), old), "a", nil), phase: addonsv1.RolloutProgressing, start: []string{"a"}},
		"no wave before its turn":          {in: first(input(at("a", "new", progressing, 0), old), "a", nil), phase: addonsv1.RolloutProgressing, next: time.Hour},
		"a soak":                           {in: first(input(at("a", "new", ready, 40*time.Minute), old), "a", soaking), phase: addonsv1.RolloutSoaking, next: 20 * time.Minute},
		"the end of a soak":                {in: first(input(at("a", "new", ready, time.Hour), old), "a", soaking), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"a selector that takes no cluster": {in: first(input(old), "a", soaking), phase: addonsv1.RolloutWaitingForClusters},
		"it is optional":                   {in: first(input(old), "a", func(w *rollout.Wave) { w.Optional = true }), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"it is promoted":                   {in: with(first(input(old), "a", soaking), func(in *rollout.Input) { in.Promoted = sets.New("first") }), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"a soak after the last wave":       {in: lastSoaks(input(at("a", "new", ready, 40*time.Minute))), phase: addonsv1.RolloutSoaking, next: 20 * time.Minute},
		"the end of the last soak":         {in: lastSoaks(input(at("a", "new", ready, time.Hour))), phase: addonsv1.RolloutCompleted, completed: true},
		"also if all is approved":          {in: with(lastSoaks(input(at("a", "new", ready, 0))), func(in *rollout.Input) { in.Approved = sets.New(rollout.All) }), phase: addonsv1.RolloutSoaking, next: time.Hour},
		"ready, but not for long enough":   {in: held(input(at("a", "new", ready, 4*time.Minute), old)), phase: addonsv1.RolloutProgressing, next: 6 * time.Minute},
		"ready for long enough":            {in: held(input(at("a", "new", ready, 10*time.Minute), old)), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"a soak that is promoted":          {in: with(first(input(at("a", "new", ready, 0), old), "a", soaking), func(in *rollout.Input) { in.Promoted = sets.New("first") }), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"a wave that is over stays over": {in: with(first(input(at("a", "old", ready, 0), old, joined(at("c", "old", ready, 0))), "a", approved), func(in *rollout.Input) {
			in.Over, in.Strategy.Waves[1].MaxConcurrent = sets.New("first"), intstr.FromInt32(2)
		}), phase: addonsv1.RolloutProgressing, start: []string{"a", "c"}},
		"one that joins holds up no soak":              {in: with(first(input(at("a", "new", ready, time.Hour), old, named(joined(at("c", "new", ready, 0)), "a")), "a", soaking), begun), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"approval":                                     {in: first(input(at("a", "old", ready, 0), old), "a", approved), phase: addonsv1.RolloutWaitingForApproval},
		"approval of another wave":                     {in: with(first(input(at("a", "old", ready, 0), old), "a", approved), func(in *rollout.Input) { in.Approved = sets.New("rest") }), phase: addonsv1.RolloutWaitingForApproval},
		"an approved wave":                             {in: with(first(input(at("a", "old", ready, 0), old), "a", approved), func(in *rollout.Input) { in.Approved = sets.New("first") }), phase: addonsv1.RolloutProgressing, start: []string{"a"}},
		"a wave that needs no start needs no approval": {in: first(input(at("a", "new", ready, 0), old), "a", approved), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"promoted, it doesn't soak":                    {in: with(first(input(at("a", "new", ready, 0), old), "a", soaking), func(in *rollout.Input) { in.Approved = sets.New(rollout.All) }), phase: addonsv1.RolloutProgressing, start: []string{"b"}},

		"a failure within the first minute is tried again": {in: input(at("a", "new", isFailed, 20*time.Second), old), phase: addonsv1.RolloutProgressing, next: 40 * time.Second},
		"meanwhile no other one starts": {in: with(input(at("a", "new", isFailed, 20*time.Second), old, at("c", "old", ready, 0)), func(in *rollout.Input) {
			in.Strategy.Waves[0].MaxConcurrent = intstr.FromInt32(3)
		}), phase: addonsv1.RolloutProgressing, next: 40 * time.Second},
		"a failure":                             {in: input(at("a", "new", isFailed, time.Minute), old), phase: addonsv1.RolloutHalted, halt: 1},
		"a workload that isn't ready any more":  {in: input(at("a", "new", degraded, 0), old), phase: addonsv1.RolloutHalted, halt: 1},
		"it takes too long":                     {in: input(at("a", "new", progressing, time.Hour), old), phase: addonsv1.RolloutHalted, halt: 1},
		"it failed, and is paused":              {in: input(without(at("a", "new", isFailed, time.Hour), "Paused", 0), old), phase: addonsv1.RolloutHalted, halt: 1},
		"it failed, and is silent":              {in: input(without(at("a", "new", degraded, time.Hour), "ConnectionRefused", 0), old), phase: addonsv1.RolloutHalted, halt: 1},
		"a halt holds":                          {in: with(input(at("a", "new", ready, time.Hour), old), halted(1)), phase: addonsv1.RolloutHalted},
		"a person halted it":                    {in: with(input(at("a", "new", ready, time.Hour), old), halted(0)), phase: addonsv1.RolloutHalted},
		"more fail during a halt":               {in: with(input(at("a", "new", isFailed, time.Hour), at("c", "new", isFailed, time.Hour), old), halted(1)), phase: addonsv1.RolloutHalted, halt: 2},
		"a halt ends with a higher maxFailed":   {in: with(input(at("a", "new", ready, time.Hour), old), halted(1), mayFail(1)), phase: addonsv1.RolloutProgressing, start: []string{"b"}, resume: true},
		"not if it is still too low":            {in: with(input(at("a", "new", ready, time.Hour), old), halted(2), mayFail(1)), phase: addonsv1.RolloutHalted},
		"a halt becomes a rejection":            {in: with(input(at("a", "new", ready, time.Hour), old), halted(1), rollsBack), phase: addonsv1.RolloutHalted, reject: true},
		"a person who halts it rejects nothing": {in: with(input(at("a", "new", ready, time.Hour), old), halted(0), rollsBack), phase: addonsv1.RolloutHalted},
		"a paused stack rejects nothing":        {in: with(input(at("a", "new", isFailed, time.Hour), old), rollsBack, func(in *rollout.Input) { in.Stop.Phase = addonsv1.RolloutPaused }), phase: addonsv1.RolloutHalted, halt: 1},
		"it wasn't well before":                 {in: input(unwell(at("a", "new", isFailed, time.Hour)), old), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"a failure that may be":                 {in: with(input(at("a", "new", isFailed, time.Hour), old), func(in *rollout.Input) { in.Strategy.MaxFailed = intstr.FromString("50%") }), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"back, after a failure":                 {in: with(input(at("a", "new", isFailed, time.Hour), old), func(in *rollout.Input) { in.Strategy.RollsBack = true }), phase: addonsv1.RolloutHalted, reject: true},
		"nothing to go back to":                 {in: with(input(at("a", "new", isFailed, time.Hour), old), func(in *rollout.Input) { in.Strategy.RollsBack, in.Clusters[0].GoesBackTo = true, "" }), phase: addonsv1.RolloutHalted, halt: 1},
		"a cluster that failed at what was never completed gets the remedy first": {
			in: first(input(at("a", "old", ready, 0), unfinished(at("b", "bad", isFailed, time.Hour))), "a", nil), phase: addonsv1.RolloutProgressing, start: []string{"b"}},

		"an unreachable one is left out": {in: input(without(at("a", "old", ready, time.Hour), "ConnectionRefused", time.Minute), old), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"paused ones come later":         {in: input(without(old, "Paused", 0), at("a", "new", ready, 0)), phase: addonsv1.RolloutCompleted},
		"a wave of which all are away":   {in: first(input(without(at("a", "old", ready, 0), "Paused", 0), old), "a", nil), phase: addonsv1.RolloutWaitingForClusters},
		"and continues without them":     {in: with(first(input(without(at("a", "old", ready, 0), "Paused", 0), old), "a", nil), func(in *rollout.Input) { in.Approved = sets.New(rollout.All) }), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"silent since it started":        {in: input(without(at("a", "new", progressing, 5*time.Minute), "ConnectionRefused", 4*time.Minute), old), phase: addonsv1.RolloutProgressing, next: 6 * time.Minute},
		"cut off by the change":          {in: input(without(at("a", "new", progressing, 15*time.Minute), "ConnectionRefused", 11*time.Minute), old), phase: addonsv1.RolloutHalted, halt: 1},
		"cut off before it was done":     {in: held(input(without(at("a", "new", ready, 15*time.Minute), "ConnectionRefused", 11*time.Minute), old)), phase: addonsv1.RolloutHalted, halt: 1},
		"silent since before it started": {in: input(without(at("a", "new", progressing, 5*time.Minute), "ConnectionRefused", 20*time.Minute), old), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"silent after it was ready":      {in: input(without(at("a", "new", ready, 15*time.Minute), "ConnectionRefused", 11*time.Minute), at("c", "new", ready, 0), old), phase: addonsv1.RolloutProgressing, start: []string{"b"}},

		"outside of windows": {in: with(input(old), func(in *rollout.Input) {
			in.Stop = rollout.Stop{Phase: addonsv1.RolloutWaitingForWindow, Until: now.Add(time.Hour)}
		}), phase: addonsv1.RolloutWaitingForWindow, next: time.Hour},
		"paused with nothing to start": {in: with(input(at("a", "new", ready, 0)), func(in *rollout.Input) { in.Stop.Phase = addonsv1.RolloutPaused }), phase: addonsv1.RolloutCompleted},
		"others lag": {in: with(first(input(at("a", "new", ready, 0), old), "a", nil), func(in *rollout.Input) {
			in.Others = others("blue", "new", 0)
		}), phase: addonsv1.RolloutWaitingForInstances},
		"others have another target": {in: with(input(old), func(in *rollout.Input) {
			in.Others = others("blue", "old", 1)
		}), phase: addonsv1.RolloutWaitingForInstances},
		"others are as far": {in: with(first(input(at("a", "new", ready, 0), old), "a", nil), func(in *rollout.Input) {
			in.Others = others("blue", "new", 1)
		}), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"others aren't done": {in: with(input(at("a", "new", ready, 0)), func(in *rollout.Input) {
			in.Others = others("blue", "new", 0)
		}), phase: addonsv1.RolloutWaitingForInstances},

		"all is approved, also if others lag": {in: with(input(old), func(in *rollout.Input) {
			in.Others, in.Approved = others("blue", "old", 1), sets.New(rollout.All)
		}), phase: addonsv1.RolloutProgressing, start: []string{"b"}},

		"a completed revision has no waves, failures or instances": {in: with(first(input(at("a", "new", isFailed, time.Hour), old), "a", approved), mode(rollout.Following), func(in *rollout.Input) {
			in.Others = others("blue", "", 0)
		}), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"a step back has no waves, approvals or soaks":       {in: held(with(first(input(at("a", "new", ready, 0), old), "b", approved), mode(rollout.SteppingBack))), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"it doesn't wait for others to begin":                {in: with(input(at("a", "new", ready, 0), old), mode(rollout.SteppingBack), func(in *rollout.Input) { in.Others = others("blue", "old", 1) }), phase: addonsv1.RolloutProgressing, start: []string{"b"}},
		"it isn't completed before others are back":          {in: with(input(at("a", "new", ready, time.Hour)), mode(rollout.SteppingBack), func(in *rollout.Input) { in.Others = others("blue", "new", 0) }), phase: addonsv1.RolloutWaitingForInstances},
		"it is completed after a while":                      {in: held(with(input(at("a", "new", ready, 0)), mode(rollout.SteppingBack))), phase: addonsv1.RolloutSoaking, next: 10 * time.Minute},
		"it halts if that fails":                             {in: with(input(at("a", "new", isFailed, time.Hour), old), mode(rollout.SteppingBack)), phase: addonsv1.RolloutHalted, halt: 1},
		"on the way back":                                    {in: with(input(at("a", "new", isFailed, time.Hour), old), mode(rollout.Returning)), phase: addonsv1.RolloutRollingBack, start: []string{"a"}},
		"one at a time goes back":                            {in: with(input(at("a", "new", isFailed, time.Hour), at("b", "old", progressing, 0)), mode(rollout.Returning)), phase: addonsv1.RolloutRollingBack, next: time.Hour},
		"one that had another revision isn't waited for":     {in: with(input(at("a", "new", isFailed, time.Hour), at("b", "old", progressing, 2*time.Minute)), mode(rollout.Returning)), phase: addonsv1.RolloutRollingBack, start: []string{"a"}},
		"going back that fails halts":                        {in: with(input(at("a", "new", isFailed, time.Hour), at("b", "old", degraded, 0)), mode(rollout.Returning)), phase: addonsv1.RolloutHalted, halt: 1},
		"a failure of one that had another revision doesn't": {in: with(input(at("a", "new", isFailed, time.Hour), at("b", "old", degraded, 2*time.Minute)), mode(rollout.Returning)), phase: addonsv1.RolloutRollingBack, start: []string{"a"}},
		"a halt from before the rejection has ended":         {in: with(input(at("a", "new", isFailed, time.Hour), old), mode(rollout.Returning), halted(1), func(in *rollout.Input) { in.Returned = time.Time{} }), phase: addonsv1.RolloutRollingBack, start: []string{"a"}},
		"nothing is rejected twice":                          {in: with(input(at("a", "new", isFailed, time.Hour), at("b", "old", degraded, 0)), mode(rollout.Returning), rollsBack), phase: addonsv1.RolloutHalted, halt: 1},
		"back":                                               {in: with(input(old), mode(rollout.Returning)), phase: addonsv1.RolloutRolledBack},
		"a revision that all got at once isn't halted":       {in: with(input(at("a", "new", isFailed, time.Hour), at("b", "new", ready, 0)), mode(rollout.AllAtOnce), rollsBack), phase: addonsv1.RolloutWaitingForClusters},
		"it is completed once all were ready for a while":    {in: held(with(input(at("a", "new", ready, 10*time.Minute), at("b", "new", ready, time.Hour)), mode(rollout.AllAtOnce))), phase: addonsv1.RolloutCompleted, completed: true},
		"not before":            {in: held(with(input(at("a", "new", ready, 9*time.Minute)), mode(rollout.AllAtOnce))), phase: addonsv1.RolloutSoaking, next: time.Minute},
		"what others can't get": {in: with(input(old), func(in *rollout.Input) { in.Replaced = true }), phase: addonsv1.RolloutHalted},
	} {
		t.Run(name, func(t *testing.T) {
			d := rollout.Decide(tc.in)
			if d.Phase != tc.phase || d.Reject != tc.reject || !slices.Equal(d.Start, tc.start) {
				t.Errorf("%s, starts %v, rejects %t", d.Phase, d.Start, d.Reject)
			}
			if d.Completed != tc.completed && d.Phase != addonsv1.RolloutCompleted || d.Resume != tc.resume || (d.Halt != nil) != (tc.halt > 0) || d.Halt != nil && d.Halt.Failed != tc.halt {
				t.Errorf("completed %t, resumes %t, halts %+v", d.Completed, d.Resume, d.Halt)
			}
			if next := d.Next.Sub(now); tc.next == 0 != d.Next.IsZero() || tc.next != 0 && next != tc.next {
				t.Errorf("looks again after %s (%s)", next, d.Next)
			}
			if rollout.Describe(types.NamespacedName{Namespace: "team", Name: "platform"}, tc.in, d, "r was rejected: broken") == "" {
				t.Error("it says nothing")
			}
		})
	}
}

// unfinished returns a cluster at a revision that was never completed.
func unfinished(c rollout.Cluster) rollout.Cluster {
	c.Unfinished = true
	return c
}

func TestTarget(t *testing.T) {
	r := func(name string, marks ...string) rollout.Revision {
		has := func(mark string) bool { return slices.Contains(marks, mark) }
		is := rollout.Revision{Name: name, Cause: rollout.Edited, Started: has("started"), Completed: has("completed"), Rejected: has("rejected"), Halted: has("halted"), Replaced: has("replaced")}
		if has("followed") {
			is.Cause = rollout.Followed
		}
		return is
	}
	for name, tc := range map[string]struct {
		revisions []rollout.Revision
		want      int
	}{
		"none":                                            {nil, -1},
		"the first":                                       {[]rollout.Revision{r("1")}, 0},
		"an edit doesn't wait":                            {[]rollout.Revision{r("2"), r("1", "started")}, 0},
		"a followed version waits":                        {[]rollout.Revision{r("2", "followed"), r("1", "started")}, 1},
		"it doesn't wait for what is completed":           {[]rollout.Revision{r("2", "followed"), r("1", "started", "completed")}, 0},
		"the newest of those that wait":                   {[]rollout.Revision{r("3", "followed"), r("2", "followed"), r("1", "completed")}, 0},
		"all wait for the one that has started":           {[]rollout.Revision{r("3", "followed"), r("2", "followed"), r("1", "followed", "started")}, 2},
		"an edit that hasn't started is in what followed": {[]rollout.Revision{r("3", "followed"), r("2"), r("1", "started")}, 0},
		"one that is rejected before it has started changes nothing": {[]rollout.Revision{r("3", "rejected"), r("2", "started"), r("1", "completed")}, 1},
		"clusters go back from one that has started":                 {[]rollout.Revision{r("2", "started", "rejected"), r("1", "completed")}, 0},
		"a version waits for the end of a step back":                 {[]rollout.Revision{r("2", "followed"), {Name: "1", Cause: rollout.Back, Started: true}}, 1},
		"clusters go back from a version, too":                       {[]rollout.Revision{r("2", "followed", "started", "rejected"), r("1", "started")}, 0},
		"an edit after a rejection":                                  {[]rollout.Revision{r("3"), r("2", "rejected"), r("1", "completed")}, 0},
		"a version that comes after a rejection":                     {[]rollout.Revision{r("3", "followed"), r("2", "started", "rejected"), r("1", "completed")}, 0},
		"a version that comes after a halt":                          {[]rollout.Revision{r("3", "followed"), r("2", "started", "halted"), r("1", "completed")}, 0},
		"all rejected":                                               {[]rollout.Revision{r("2", "rejected"), r("1", "rejected")}, -1},
		"nothing waits for what others can't get":                    {[]rollout.Revision{r("2", "followed"), r("1", "started", "replaced")}, 0},
		"but for one that has started before":                        {[]rollout.Revision{r("3", "followed"), r("2", "followed", "started", "replaced"), r("1", "started")}, 2},
		"a completed one that was rejected later":                    {[]rollout.Revision{r("2", "started", "completed", "rejected"), r("1", "completed")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rollout.Target(tc.revisions); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// Waves of a size have the same clusters whatever comes and leaves elsewhere, and each cluster is in one wave.
func TestWaves(t *testing.T) {
	var clusters []rollout.Cluster
	for i := range 40 {
		c := at(fmt.Sprint("c", i), "new", ready, 0)
		c.Labels = labels.Set{"region": []string{"eu", "us"}[i%2]}
		clusters = append(clusters, c)
	}
	in := input(clusters...)
	two, tenth := intstr.FromInt32(2), intstr.FromString("10%")
	in.Strategy.Waves = []rollout.Wave{
		{Name: "canary", Size: &two}, {Name: "eu", Selector: labels.SelectorFromSet(labels.Set{"region": "eu"})}, {Name: "some", Size: &tenth}, in.Strategy.Waves[0],
	}
	d := rollout.Decide(in)
	var totals []int
	sum := 0
	for _, c := range d.Waves {
		totals, sum = append(totals, c.Total), sum+c.Total
	}
	if totals[0] != 2 || sum != 40 || totals[2] != (20-(totals[0]-(20-totals[1]))+9)/10 {
		t.Errorf("waves of %v", totals)
	}
	for i := range 20 {
		late := at(fmt.Sprint("late", i), "new", ready, 0)
		late.Joined = now
		in.Clusters = append(in.Clusters, late)
	}
	in.Began = now.Add(-time.Minute)
	if amid := rollout.Decide(in); amid.Waves[0].Total != 2 || amid.Waves[1].Total != totals[1] || amid.Waves[3].Total < 36-totals[1] {
		t.Errorf("those that come amid it take a place: %+v", amid.Waves)
	}
	in.Clusters, in.Began = slices.Clone(in.Clusters[:40]), time.Time{}
	slices.Reverse(in.Clusters)
	if diff := cmp.Diff(d, rollout.Decide(in)); diff != "" {
		t.Error("the order of clusters matters: ", diff)
	}
}

// A wave of a size has so many clusters that can show something. Who leaves isn't replaced.
func TestSizeOfWaves(t *testing.T) {
	names := func(d rollout.Decision) (names []string) {
		for _, m := range d.Members[0] {
			names = append(names, m.Name)
		}
		return names
	}
	var clusters []rollout.Cluster
	for i := range 10 {
		clusters = append(clusters, at(fmt.Sprint("c", i), "old", ready, time.Hour))
	}
	in := input(clusters...)
	two := intstr.FromInt32(2)
	in.Strategy.Waves = []rollout.Wave{{Name: "canary", Size: &two}, in.Strategy.Waves[0]}
	d := rollout.Decide(in)
	canaries := names(d)
	if len(canaries) != 2 {
		t.Fatal(canaries)
	}
	find := func(name string) int {
		return slices.IndexFunc(in.Clusters, func(c rollout.Cluster) bool { return c.Name == name })
	}
	in.Clusters[find(canaries[0])].Away, in.Clusters[find(canaries[0])].Unseen = "Connecting", true
	if is := names(rollout.Decide(in)); !slices.Equal(is, canaries) {
		t.Errorf("one that wasn't seen yet keeps its place: %v", is)
	}
	in.Clusters[find(canaries[0])].Away, in.Clusters[find(canaries[0])].Unseen = "Paused", false
	in.Clusters[find(canaries[1])].State = isFailed
	if is := names(rollout.Decide(in)); len(is) != 4 || is[0] != canaries[0] || is[1] != canaries[1] {
		t.Errorf("two that can show nothing, and two that can: %v", is)
	}
	in.Began, in.Last = now, d.Last
	if is := names(rollout.Decide(in)); !slices.Equal(is, canaries) {
		t.Errorf("after it has begun: %v", is)
	}
	in.Clusters = slices.Delete(in.Clusters, find(canaries[0]), find(canaries[0])+1)
	if is := names(rollout.Decide(in)); !slices.Equal(is, canaries[1:]) {
		t.Errorf("one is gone: %v", is)
	}
	for i := range in.Clusters {
		in.Clusters[i].Away, in.Began, in.Last = "Paused", time.Time{}, nil
	}
	if is := names(rollout.Decide(in)); len(is) != 2 {
		t.Errorf("all are away: %v", is)
	}
}

func BenchmarkDecide(b *testing.B) {
	var clusters []rollout.Cluster
	for i := range 1000 {
		clusters = append(clusters, at(fmt.Sprint("c", i), []string{"old", "new"}[i%2], ready, 0))
	}
	in := input(clusters...)
	for i := range 16 {
		in = first(in, fmt.Sprint("c", i), nil)
	}
	for b.Loop() {
		rollout.Decide(in)
	}
}
