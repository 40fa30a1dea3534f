// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/upkeep"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/health"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/test/addons"
)

// While the replicas of a workload change, what is missing of them is counted from then on. A cause that a pod names lasts.
func TestFindingsThatGoOn(t *testing.T) {
	few := func(seen string) *health.Finding {
		return &health.Finding{Reason: health.ReasonReplicasUnavailable, Seen: seen}
	}
	crash := func() *health.Finding { return &health.Finding{Reason: health.ReasonCrashLoopBackOff} }
	for name, tc := range map[string]struct {
		looks []*health.Finding // a second between them
		since int               // the look from which the last one is counted
	}{
		"the same":                       {[]*health.Finding{few("1 of 2"), few("1 of 2"), few("1 of 2")}, 0},
		"others":                         {[]*health.Finding{few("1 of 2"), few("2 of 5"), few("3 of 5")}, 2},
		"a pod says why":                 {[]*health.Finding{few("1 of 2"), crash(), crash()}, 0},
		"it runs for a moment":           {[]*health.Finding{few("1 of 2"), crash(), few("1 of 2")}, 0},
		"other ones, after a pod's":      {[]*health.Finding{few("1 of 2"), crash(), few("1 of 3")}, 2},
		"a pod's, and then the replicas": {[]*health.Finding{crash(), few("1 of 2"), few("1 of 2")}, 0},
		"all was well":                   {[]*health.Finding{few("1 of 2"), nil, few("1 of 2")}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			memory, key, start := &upkeep.HealthMemory{}, deliver.ObjectKey{Kind: "Deployment", Name: "web"}, time.Now()
			for i, finding := range tc.looks {
				memory.Note(key, finding, health.Before{Available: 2}, start.Add(time.Duration(i)*time.Second))
			}
			_, from, _ := memory.Worst()
			if since := from.Sub(start); since != time.Duration(tc.since)*time.Second {
				t.Errorf("it is counted from %s, want look %d", since, tc.since)
			}
		})
	}
}

// An add-on that becomes Ready is so at once, though nobody has looked at its workloads yet. One that was Degraded before a
// restart stays so until somebody has.
func TestHealthThatNobodyKnowsYet(t *testing.T) {
	record := addons.Installed("platform", "web")
	for was, want := range map[addonsv1.AddonPhase]addonsv1.AddonPhase{
		addonsv1.AddonInstalling: addonsv1.AddonReady, addonsv1.AddonReady: addonsv1.AddonReady, addonsv1.AddonDegraded: addonsv1.AddonDegraded,
	} {
		c := addons.Given(t, record)
		a := addons.Wanted("platform", "web")
		a.Namespace = record.Namespace
		one := result.Addon{Status: releases.Status(record, addonsv1.AddonReady)}
		q := upkeep.Health{Watched: c.Watched, Workload: c.Workload, Addon: &a, Memory: &upkeep.HealthMemory{}, Was: releases.Status(record, was), Now: c.Now}
		if degraded := q.Look(t.Context(), record, nil, &one); degraded != nil {
			one.Say(*degraded)
		}
		if one.Status.Phase != want {
			t.Errorf("it was %s: %+v", was, one.Status)
		}
	}
}

// What a cluster says of an object is shown without the add-on's secrets, and not at all while nobody knows these.
func TestWordsOfAClusterHideSecrets(t *testing.T) {
	const words = "the password pa55-word-of-web is wrong"
	for name, tc := range map[string]struct {
		in   *inputs.Inputs
		want string
	}{
		"known":     {&inputs.Inputs{Secrets: []string{"pa55-word-of-web"}}, "the password " + message.Redacted + " is wrong"},
		"none":      {&inputs.Inputs{}, words},
		"recorded":  {&inputs.Inputs{Recorded: true}, message.Redacted},
		"not known": {nil, message.Redacted},
	} {
		if got := upkeep.Hiding(tc.in)(words); got != tc.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
