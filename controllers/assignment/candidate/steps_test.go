// SPDX-License-Identifier: Apache-2.0

package candidate_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/stacks"
)

// The revisions of a stack are named by their age: "3" is the newest.
func TestStepsOfARollout(t *testing.T) {
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	everyone, nobody := addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{}}, addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "none"}}}
	all := []appsv1.ControllerRevision{stacks.Revision(t, "3", everyone), stacks.Revision(t, "2", everyone), stacks.Revision(t, "1", everyone)}
	for name, tc := range map[string]struct {
		previous  string
		revisions []appsv1.ControllerRevision
		target    int // index of the target
		completed int // index of the completed one, -1 for none
		cause     rollout.Cause
		rejected  bool // the target is
		status    addonsv1.StackStatus
		turn      bool
		young     bool
		none      bool // no target
		replaced  bool // the completed one can't be had any more
		held      string
		recorded  string // by the cluster
		fresh     bool   // it may report that yet
		want      string
	}{
		"it waits for its turn":          {previous: "2", completed: 1, want: "2"},
		"its turn":                       {previous: "2", completed: 1, turn: true, want: "3"},
		"it is behind the completed one": {previous: "1", completed: 1, want: "2"},
		"it is ahead of the completed one, which is the target": {previous: "3", target: 1, completed: 1, want: "3"},
		"it is behind the completed one, which is the target":   {previous: "1", target: 1, completed: 1, want: "1"},
		"its revision is gone":                                  {previous: "0", completed: 1, want: "0"},
		"it joins":                                              {completed: 1, want: "2"},
		"it joins a step back":                                  {completed: -1, cause: rollout.Back, want: "3"},
		"it joins, and the completed one isn't for it":          {revisions: []appsv1.ControllerRevision{all[0], stacks.Revision(t, "2", nobody)}, completed: 1, want: ""},
		"it is new, and the completed one isn't for it":         {revisions: []appsv1.ControllerRevision{all[0], stacks.Revision(t, "2", nobody)}, completed: 1, young: true, want: "3"},
		"the stack is new":                                      {completed: -1, want: ""},
		"the stack is new, and it is its turn":                  {completed: -1, turn: true, want: "3"},
		"a new cluster can't wait for its network":              {completed: -1, young: true, want: "3"},
		"it joins, and the completed one can't be had":          {completed: 1, replaced: true, want: ""},
		"it is new, and the completed one can't be had":         {completed: 1, replaced: true, young: true, want: "3"},
		"it is behind one that can't be had":                    {previous: "1", completed: 1, replaced: true, want: "1"},
		"all revisions are rejected":                            {completed: -1, young: true, none: true, want: ""},
		"all revisions are rejected, and it has one":            {previous: "2", completed: -1, none: true, want: "2"},
		"it is held, and behind the completed one":              {previous: "1", completed: 1, held: "other, platform", want: "1"},
		"it is held out of another stack's rollouts":            {previous: "1", completed: 1, held: "other", want: "2"},
		"it is held out of all rollouts":                        {previous: "1", completed: 1, held: "*", want: "1"},
		"it comes back":                                         {recorded: "3", completed: 1, want: "3"},
		"it comes back, and nothing is under way":               {recorded: "1", completed: 0, want: "3"},
		"it comes back before the first one was completed":      {recorded: "2", completed: -1, young: true, want: "2"},
		"it comes back with another one, and it is its turn":    {recorded: "1", completed: 1, turn: true, want: "3"},
		"it comes back with one, and has another one":           {previous: "2", recorded: "3", completed: 1, want: "2"},
		"it comes back with what was rejected":                  {recorded: "3", completed: 1, rejected: true, want: "2"},
		"it may come back":                                      {fresh: true, completed: 1, want: ""},
		"it may come back, and nothing is under way":            {fresh: true, completed: 0, want: "3"},
		"it is held, and joins":                                 {completed: 1, held: "platform", want: "2"},
		"it goes back":                                          {previous: "3", completed: 2, rejected: true, turn: true, status: addonsv1.StackStatus{Name: "platform", Revision: "3", Previous: "2"}, want: "2"},
		"it goes back to what was completed":                    {previous: "3", completed: 2, rejected: true, turn: true, want: "1"},
		"it waits for its turn to go back":                      {previous: "3", completed: 2, rejected: true, want: "3"},
		"there is nothing to go back to":                        {previous: "3", completed: -1, rejected: true, turn: true, want: "3"},
		"it hasn't what was rejected":                           {previous: "2", completed: 1, rejected: true, turn: true, want: "2"},
		"it joins after a rejection":                            {completed: 1, rejected: true, young: true, want: "2"},
		"it is new, and all that there is was rejected":         {completed: -1, rejected: true, young: true, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			marked := []rollout.Revision{{Name: "3", Cause: rollout.Edited, Started: true}, {Name: "2", Cause: rollout.Edited}, {Name: "1", Cause: rollout.Edited}}
			c := candidate.Stack{Name: "platform", Spec: everyone, Revision: marked[tc.target].Name, Revisions: all, Steps: &candidate.Steps{Now: made.Add(24 * time.Hour), Made: made, Marked: marked, Target: tc.target}}
			if tc.completed >= 0 {
				marked[tc.completed].Completed, marked[tc.completed].Replaced = true, tc.replaced
			}
			if marked[tc.target].Rejected = tc.rejected; tc.cause != "" {
				marked[tc.target].Cause = tc.cause
			}
			if tc.none {
				c.Steps.Target = -1
			}
			if tc.revisions != nil {
				c.Revisions, c.Steps.Marked = tc.revisions, marked[:2]
			}
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod", CreationTimestamp: metav1.NewTime(made.Add(-time.Hour))}}
			if tc.turn {
				c.Steps.Turns = sets.New("prod")
			}
			ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Name: "prod", CreationTimestamp: metav1.NewTime(made.Add(time.Hour))}} // made again
			if tc.young {
				cluster.CreationTimestamp = metav1.NewTime(made.Add(time.Hour))
			}
			if tc.status.Name != "" {
				ca.Status.Stacks = []addonsv1.StackStatus{tc.status}
			}
			if tc.held != "" {
				ca.Annotations = map[string]string{addonsv1.HoldRolloutAnnotation: tc.held}
			}
			if tc.previous != "" {
				ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", Revision: tc.previous}}
			}
			if tc.recorded != "" {
				ca.Status.ObservedGeneration, ca.Status.Addons = 1, []addonsv1.AddonStatus{{Stack: "platform", RecordedRevision: tc.recorded}}
			}
			if tc.fresh {
				c.Steps.Now = ca.CreationTimestamp.Time
			}
			got := stack.AssignedRevision(candidate.Assign(member.OfCluster(cluster), []candidate.Stack{c}, ca), "platform")
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Another stack that is to go stays until the first turn of the one that selects the cluster now.
func TestStackIsAwaitedUntilItsTurn(t *testing.T) {
	cluster := member.OfCluster(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}})
	coming := candidate.Stack{Name: "b", Spec: selecting(&metav1.LabelSelector{}), Revision: "b-1", Steps: &candidate.Steps{Marked: []rollout.Revision{{Name: "b-1"}}, Made: time.Now()}}
	going := candidate.Stack{Name: "a", Spec: selecting(&metav1.LabelSelector{MatchLabels: map[string]string{"env": "none"}}), Revision: "a-1"}
	ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Name: "prod", CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour))}}
	if got := candidate.Assign(cluster, []candidate.Stack{coming}, ca); len(got) > 0 {
		t.Errorf("without others it isn't named before its turn, else it would hold upgrades of Kubernetes: %+v", got)
	}
	ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}}
	got := candidate.Assign(cluster, []candidate.Stack{going, coming}, ca)
	if len(got) != 1 || got[0].Name != "b" || got[0].Revision != "" {
		t.Errorf("it is awaited: %+v", got)
	}
	ca.Spec.Stacks = got
	left := addonsv1.AddonStatus{Stack: "a", Namespace: "apps", Name: "web", Phase: addonsv1.AddonReady, Revision: 1, Objects: &addonsv1.ObjectCounts{Total: 1}}
	ca.Status.Addons = []addonsv1.AddonStatus{left}
	if again := candidate.Assign(cluster, []candidate.Stack{going, coming}, ca); len(again) != 1 || again[0].Name != "b" || again[0].Revision != "" {
		t.Errorf("it is awaited until its turn: %+v", again)
	}
	left.Phase, left.Reason = addonsv1.AddonUnassigned, reasons.StackUnknown
	for _, addons := range [][]addonsv1.AddonStatus{nil, {left}} {
		ca.Status.Addons = addons
		if again := candidate.Assign(cluster, []candidate.Stack{coming}, ca); len(again) > 0 {
			t.Errorf("a stack that had no revision at first isn't named before its turn, either: %+v", again)
		}
	}
}
