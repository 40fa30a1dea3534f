// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

func wantedAddon(stack, name string) wanted.Addon {
	return wanted.Addon{Addon: addonsv1.Addon{Name: name}, Stack: stack}
}

// What a stack installed stays its own while nobody knows what it wants: its revision may come a moment later than that of
// another stack.
func TestClaims(t *testing.T) {
	both := []wanted.Addon{wantedAddon("a", "web"), wantedAddon("b", "web")}
	for name, tc := range map[string]struct {
		installed, undecided string // stacks, "none" for none
		want                 string
		moved                bool
	}{
		"nobody has it":                         {"none", "none", "a", false},
		"the second has it":                     {"b", "none", "b", false},
		"a stack has it that wants it no more":  {"gone", "none", "a", false},
		"a stack has it that is undecided":      {"gone", "gone", "gone", false},
		"it moves from one that is undecided":   {"gone", "gone", "a", true},
		"nobody has it, and a stack may":        {"none", "gone", "a", false},
		"nobody has it, and one without a name": {"none", "", "a", false}, // no record has this name
	} {
		installed, unresolved := map[deliver.Release]deliver.Summary{}, map[string]unresolvedStack{}
		if tc.installed != "none" {
			installed[both[0].Release()] = deliver.Summary{Release: both[0].Release(), Terms: deliver.Terms{Stack: tc.installed}}
		}
		if tc.undecided != "none" {
			unresolved[tc.undecided] = unresolvedStack{state: decide.Undecided}
		}
		assigned := []addonsv1.StackRevision{{Name: "gone"}}
		if tc.moved {
			assigned[0].MovedAddons = []string{both[0].Release().String()}
		}
		if got := releaseHolders(both, installed, unresolved, assigned)[both[0].Release()]; got != tc.want {
			t.Errorf("%s: %q got it", name, got)
		}
	}
}

// proven returns a record that can be proven.
func proven(record deliver.Summary) deliver.Summary {
	record.Complete, record.Content = true, "sha256:1"
	return record
}

func proofsOf(records ...deliver.Summary) *releases.Proofs {
	all := &releases.Proofs{}
	for _, r := range records {
		all.Note(r.Release, r.Proof())
	}
	return all
}

// What is installed is left alone, as long as it is of just these inputs, and no certificate is due.
func TestSettled(t *testing.T) {
	now := time.Unix(1000, 0)
	in := &inputs{artifact: "sha256:1", Addon: &wanted.Addon{Addon: addonsv1.Addon{Namespace: "n", Name: "r"}}}
	digest := in.digest(factsNone)
	for name, tc := range map[string]struct {
		status, digest string
		renewAt        time.Time
		unproven, want bool
	}{
		"as it is wanted":            {status: deliver.StatusDeployed, digest: digest, want: true},
		"nothing proves it":          {status: deliver.StatusDeployed, digest: digest, unproven: true},
		"of other inputs":            {status: deliver.StatusDeployed, digest: "other"},
		"it failed":                  {status: "failed", digest: digest},
		"a certificate is due":       {status: deliver.StatusDeployed, digest: digest, renewAt: now},
		"a certificate is due later": {status: deliver.StatusDeployed, digest: digest, renewAt: now.Add(time.Second), want: true},
	} {
		record := proven(deliver.Summary{Owned: true, Status: tc.status, Digest: tc.digest, RenewAt: tc.renewAt})
		q := &clusterRun{now: now, proofs: &releases.Proofs{}}
		if !tc.unproven {
			q.proofs = proofsOf(record)
		}
		if got, err := (rendering{q}).settled(t.Context(), in, record); got != tc.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

var factsNone job.FactsUsed

// An aggregated API server that is down takes no answer away, and freezes no other.
func TestPreviousAnswers(t *testing.T) {
	facts, came := job.Facts{KubeVersion: "v1.36.3", APIVersions: []string{"v1"}}, job.Facts{KubeVersion: "v1.36.3", APIVersions: []string{"v1", "example.com/v1"}}
	some, all := job.FactsUsed{Has: map[string]bool{"metrics.k8s.io/v1beta1": true, "example.com/v1": false}}, job.FactsUsed{APIVersions: "sha256:of-all-of-them"}
	down := []string{"metrics.k8s.io/v1beta1"}
	for name, tc := range map[string]struct {
		asked   job.FactsUsed
		facts   job.Facts
		missing []string
		want    bool
	}{
		"an API is gone":                      {some, facts, nil, false},
		"it can't be discovered now":          {some, facts, down, true},
		"an API came while another one can't": {some, came, down, false},
		"all were asked for, and one can't":   {all, facts, down, true},
		"all were asked for, and are others":  {all, facts, nil, false},
	} {
		if got := stillHolds(tc.asked, tc.facts, tc.missing); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
