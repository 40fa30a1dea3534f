// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

func wantedAddon(stack, name string) addon {
	return addon{Addon: addonsv1.Addon{Name: name}, stack: stack}
}

func TestClaims(t *testing.T) {
	release := deliver.Release{Namespace: "default", Name: "web"}
	both := []addon{wantedAddon("a", "web"), wantedAddon("b", "web")}

	if got := releaseHolders(both, nil, nil)[release]; got != "a" {
		t.Errorf("of two stacks that want a release nobody has, %q got it; want the first", got)
	}
	installed := map[deliver.Release]deliver.Summary{release: {Terms: deliver.Terms{Stack: "b"}}}
	if got := releaseHolders(both, installed, nil)[release]; got != "b" {
		t.Errorf("%q got the release that b installed", got)
	}
	installed[release] = deliver.Summary{Terms: deliver.Terms{Stack: "gone"}}
	if got := releaseHolders(both, installed, nil)[release]; got != "a" {
		t.Errorf("%q got the release of a stack that no longer wants it; want the first", got)
	}

	// What a stack installed stays its own while nobody knows what it wants: its
	// revision may come a moment later than that of another stack.
	keeping := map[string]unresolvedStack{"gone": {state: decide.Undecided}}
	if got := releaseHolders(both, installed, keeping)[release]; got != "gone" {
		t.Errorf("%q took the release of a stack that is undecided", got)
	}
	if got := releaseHolders(both, nil, keeping)[release]; got != "a" {
		t.Errorf("%q got a release that nobody has; want the first", got)
	}
	keeping = map[string]unresolvedStack{"": {state: decide.Undecided}} // no record has this name
	if got := releaseHolders(both, nil, keeping)[release]; got != "a" {
		t.Errorf("%q got a release that nobody has; want the first", got)
	}
}

func TestRemovalGoesAgainstDependencies(t *testing.T) {
	summary := func(name string, dependsOn ...string) deliver.Summary {
		s := deliver.Summary{Terms: deliver.Terms{Stack: "platform", DependsOn: dependsOn}}
		s.Namespace, s.Name = "default", name
		return s
	}
	installed := map[deliver.Release]deliver.Summary{}
	for _, s := range []deliver.Summary{summary("base"), summary("middle", "base"), summary("top", "middle"), summary("kept", "base")} {
		installed[deliver.Release{Namespace: s.Namespace, Name: s.Name}] = s
	}
	keep := sets.New(deliver.Release{Namespace: "default", Name: "kept"})

	waiting := dependentsAmong(removalOrder(installed, keep))
	want := map[deliver.Release]string{
		{Namespace: "default", Name: "base"}:   "middle",
		{Namespace: "default", Name: "middle"}: "top",
	}
	if diff := cmp.Diff(want, waiting); diff != "" {
		t.Errorf("who waits for whom: -want +got:\n%s", diff)
	}
}

// Names of dependencies are of one stack.
func TestRemovalWaitsForNoOtherStack(t *testing.T) {
	base, web := deliver.Summary{Terms: deliver.Terms{Stack: "platform"}}, deliver.Summary{Terms: deliver.Terms{Stack: "team", DependsOn: []string{"base"}}}
	base.Name, web.Name = "base", "web"
	if waiting := dependentsAmong([]deliver.Summary{web, base}); len(waiting) > 0 {
		t.Errorf("%v wait", waiting)
	}
}

// Records of different times may say that two depend on each other.
func TestRemovalOfACycleBegins(t *testing.T) {
	a, b := deliver.Summary{Terms: deliver.Terms{DependsOn: []string{"b"}}}, deliver.Summary{Terms: deliver.Terms{DependsOn: []string{"a"}}}
	a.Name, b.Name = "a", "b"
	if waiting := dependentsAmong([]deliver.Summary{a, b}); len(waiting) != 1 {
		t.Errorf("%v wait; want one of them", waiting)
	}
	if waiting := dependentsAmong(nil); len(waiting) != 0 {
		t.Errorf("%v wait, of nothing", waiting)
	}
}

func TestDigestTellsInputsApart(t *testing.T) {
	base := inputs{artifact: "sha256:1", values: map[string]any{"a": 1}, addon: &addon{Addon: addonsv1.Addon{Namespace: "n", Name: "r"}}}
	change := map[string]func(*inputs){
		"chart":     func(in *inputs) { in.artifact = "sha256:2" },
		"values":    func(in *inputs) { in.values = map[string]any{"a": 2} },
		"namespace": func(in *inputs) { in.Namespace = "m" },
		"name":      func(in *inputs) { in.Name = "s" },
		"readiness": func(in *inputs) { in.Readiness = []addonsv1.ReadinessCheck{{Kind: "Job"}} },
	}
	digestOf := func(in inputs) string { return in.digest(factsNone) }
	again := base
	again.values = map[string]any{"a": 1}
	if digestOf(base) != digestOf(again) {
		t.Error("equal inputs have different digests")
	}
	for name, apply := range change {
		other, its := base, *base.addon
		other.addon = &its
		apply(&other)
		if digestOf(other) == digestOf(base) {
			t.Errorf("another %s has the same digest", name)
		}
	}
	if base.digest(factsOf("v1.36.3")) == digestOf(base) {
		t.Error("facts make no difference")
	}
}

// proven returns a record that can be proven.
func proven(record deliver.Summary) deliver.Summary {
	record.Complete, record.Content = true, "sha256:1"
	return record
}

func proofsOf(records ...deliver.Summary) map[deliver.Release]string {
	all := map[deliver.Release]string{}
	for _, r := range records {
		all[r.Release] = r.Proof()
	}
	return all
}

// What is installed is left alone, as long as it is of just these inputs, and no certificate is due.
func TestSettled(t *testing.T) {
	now := time.Unix(1000, 0)
	in := &inputs{artifact: "sha256:1", addon: &addon{Addon: addonsv1.Addon{Namespace: "n", Name: "r"}}}
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
		q := &clusterRun{now: now}
		if !tc.unproven {
			q.proofs = proofsOf(record)
		}
		if got, err := (rendering{q}).settled(t.Context(), in, record); got != tc.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

var factsNone job.FactsUsed

func factsOf(version string) job.FactsUsed { return job.FactsUsed{KubeVersion: version} }

// What another instance installed may have been handed over with the Cluster; what it has yet to
// install may want what no other stack has any more.
func TestUnresolvedStacks(t *testing.T) {
	for name, tc := range map[string]struct {
		written        *addonsv1.AddonStack
		revision       string
		keeps, awaited bool
	}{
		"it has no valid revision yet":            {written: &addonsv1.AddonStack{}, keeps: true, awaited: true},
		"its revision can't be found":             {written: &addonsv1.AddonStack{}, revision: "platform-1", keeps: true, awaited: true},
		"another instance's, that has yet to run": {awaited: true},
		"another instance's, that has run":        {revision: "platform-1"},
	} {
		long := map[string]time.Time{"platform": time.Unix(0, 0)}
		one := assignedStack{StackRevision: addonsv1.StackRevision{Name: "platform", Revision: tc.revision}, written: tc.written}
		s := resolveStacks([]assignedStack{one}, member.OfCluster(&clusterv1.Cluster{}), long, time.Unix(1000, 0))
		if got := s.unresolved["platform"]; got.state.KeepsReleases() != tc.keeps || got.state.IsAwaited() != tc.awaited || got.why == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// An aggregated API server that is down takes no answer away, and freezes no other.
func TestPreviousAnswers(t *testing.T) {
	facts := job.Facts{KubeVersion: "v1.36.3", APIVersions: []string{"v1"}}
	asked := job.FactsUsed{Has: map[string]bool{"metrics.k8s.io/v1beta1": true, "example.com/v1": false}}
	if asked.Holds(facts) {
		t.Error("an API that is gone goes unnoticed")
	}
	if missing := []string{"metrics.k8s.io/v1beta1"}; !stillHolds(asked, facts, missing) {
		t.Error("an API that can't be discovered now is taken for gone")
	}
	came := job.Facts{KubeVersion: "v1.36.3", APIVersions: []string{"v1", "example.com/v1"}}
	if stillHolds(asked, came, []string{"metrics.k8s.io/v1beta1"}) {
		t.Error("an API that came goes unnoticed while another can't be discovered")
	}
	all := job.FactsUsed{APIVersions: "sha256:of-all-of-them"}
	if !stillHolds(all, facts, []string{"metrics.k8s.io/v1beta1"}) {
		t.Error("all API versions are taken for others while one can't be discovered")
	}
	if stillHolds(all, facts, nil) {
		t.Error("other API versions go unnoticed")
	}
}
