// SPDX-License-Identifier: Apache-2.0

package printing_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/test/must"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }

// printed returns what a page has, after a line break.
func printed(t *testing.T, page string, of any) string {
	t.Helper()
	out := &bytes.Buffer{}
	p := &printing.Printer{Out: out, Now: now}
	if err := p.Write(page, of); err != nil {
		t.Error(err)
	}
	return "\n" + out.String()
}

func TestStatus(t *testing.T) {
	s := &summary.Status{
		Instances: []addonsv1.ProviderInstance{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "chandler"}, Spec: addonsv1.ProviderInstanceSpec{Version: "v0.4.0"},
			Status: addonsv1.ProviderInstanceStatus{Scope: "*", HeartbeatTime: metav1.NewMicroTime(now.Add(-4 * time.Second)),
				Clusters: &addonsv1.InstanceClusters{Total: 200, Ready: 195}, UnmanagedClusters: 3},
		}},
		Stacks: []summary.Stack{
			{Namespace: "team", Name: "platform", Clusters: addonsv1.ClusterCounts{Total: 9, Ready: 5, Failed: 3, Waiting: 1}, Since: ago(14 * time.Minute), Addons: []summary.Addon{
				{Name: "cilium", Versions: map[string]int{"1.19.5": 1, "1.19.6": 8}, Available: "1.20.0"}, {Name: "dns"}}},
			{Namespace: "team", Name: "gpu", Clusters: addonsv1.ClusterCounts{Total: 2, Ready: 1}, Updating: 1},
		},
		Failed: []summary.Cause{{Namespace: "team", Stack: "platform", Addon: "cilium", Reason: "HookFailed", Message: "Job x:\nBackoffLimitExceeded", IsExample: true,
			Clusters: []string{"a", "b", "c", "d", "e", "f", "g"}, Since: ago(14 * time.Minute)}},
		Waiting: []summary.Cause{{Namespace: "team", Reason: "Paused", Clusters: []string{"h"}}, {Namespace: "team", Kind: "AddonStack", Name: "gpu", Reason: "SourceUnavailable"}},
		Held:    []summary.Held{{Namespace: "team", Stack: "gone", Cause: "StackDeleted", Addons: []string{"default/dns"}, Clusters: []string{"a", "b"}}},
		Drift:   summary.Drift{Objects: 4, Clusters: 3},
	}
	const want = `
INSTANCE          VERSION   SCOPE   HEARTBEAT   CLUSTERS   READY
system/chandler   v0.4.0    *       4s          200        195
UNMANAGED: 3 clusters in the namespaces of system/chandler: no instance has the watch filter

STACK           CLUSTERS   READY   FAILED   WAITING   UPDATING   SINCE   VERSIONS
team/platform   9          5       3        1         0          14m     cilium 1.19.6 (1.19.5 on 1) (1.20.0 is there, not taken), dns -
team/gpu        2          1       0        0         1          -       

FAILED: 7 clusters, 1 cause
  platform/cilium  HookFailed  7 clusters: a, b, c, and 4 more  14m
      for example on a: Job x: BackoffLimitExceeded

WAITING: 1 cluster, 2 causes
  team  Paused  1 cluster: h
  AddonStack gpu  SourceUnavailable

HELD: default/dns of stack gone on 2 clusters (StackDeleted): a, b
  To remove them: kubectl chandler confirm gone -n team. To keep them: undo the change

DRIFT: 4 objects on 3 clusters differ from what was installed
Next: kubectl chandler why a -n team
`
	if got := printed(t, "Status", s); got != want {
		t.Errorf("%s", got)
	}
}

// TestManyCauses has more causes than people read.
func TestManyCauses(t *testing.T) {
	causes := func(n int) (all []summary.Cause) {
		for range n {
			all = append(all, summary.Cause{Namespace: "team", Reason: "Test"})
		}
		return all
	}
	s := &summary.Status{Failed: causes(15), Waiting: causes(7), Progressing: causes(3)}
	is := printed(t, "Status", s)
	if strings.Count(is, "  team  Test") != 20 || !strings.Contains(is, "7 causes") || !strings.Contains(is, "and 2 more causes") || !strings.Contains(is, "and 3 more causes") {
		t.Error(is)
	}
	out := &bytes.Buffer{}
	must.Succeed(t, (&printing.Printer{Out: out, Now: now, Wide: true}).Write("Status", s))
	if strings.Count(out.String(), "  team  Test") != 25 {
		t.Error(out)
	}
}

func TestTree(t *testing.T) {
	s := &summary.Stack{Namespace: "team", Name: "platform", Revision: "platform-1", Clusters: addonsv1.ClusterCounts{Total: 3, Ready: 2}, Addons: []summary.Addon{
		{Name: "cni", Phases: map[addonsv1.AddonPhase][]string{addonsv1.AddonReady: {"a", "b", "c"}}},
		{Name: "ingress", DependsOn: []string{"other/x", "cni", "dns"}, Phases: map[addonsv1.AddonPhase][]string{addonsv1.AddonReady: {"a", "b"}, addonsv1.AddonFailed: {"c"}}},
		{Name: "shop", DependsOn: []string{"ingress"}},
		{Name: "dns"},
	}}
	const want = `
AddonStack team/platform  revision platform-1  2 of 3 clusters are ready
|- cni -  3 Ready
|  ` + "`" + `- ingress -  2 Ready, 1 Failed (c)  needs other/x, cni, dns
|     ` + "`" + `- shop -    needs ingress
` + "`" + `- dns -  
`
	if got := printed(t, "Tree", s); got != want {
		t.Errorf("%s", got)
	}
}

func TestOtherPages(t *testing.T) {
	stack := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform"}}
	stack.Status.Rollout = &addonsv1.RolloutStatus{Revision: "platform-2", Phase: addonsv1.RolloutSoaking, Wave: "second", Since: *ago(time.Hour), WavesDone: 1, Waves: []addonsv1.RolloutWaveStatus{
		{Name: "first", Total: 1, Updated: 1, Done: 1}, {Name: "second", Total: 5, Updated: 5, Done: 4, Failed: 1}, {Name: "rest", Total: 9, Away: 2}}}
	stack.Status.Conditions = []metav1.Condition{{Type: addonsv1.RolledOutCondition, Message: "Until noon", LastTransitionTime: *ago(2 * time.Hour)}}
	event := eventsv1.Event{Reason: "AddonFailed", Type: "Warning", Note: "x", EventTime: metav1.NewMicroTime(now)}
	event.Regarding.Kind, event.Regarding.Name = "ClusterAddon", "a"
	for page, c := range map[string]struct {
		of   any
		want string
	}{
		"Rollout": {stack, `
AddonStack team/platform  revision platform-2  wave second  soaking for 60m

WAVE     CLUSTERS   UPDATED   DONE   FAILED   AWAY   STATE
first    1          1         1      0        0      done
second   5          5         4      1        0      soaking
rest     9          0         0      0        2      waits
Until noon
`},
		"Events": {&eventsv1.EventList{Items: []eventsv1.Event{event}}, "\n2026-03-01 12:00:00Z  clusteraddon/a  AddonFailed\n      x\n"},
		"History": {&summary.History{Namespace: "team", Stack: "platform", Revisions: []summary.Revision{
			{Number: 2, Name: "platform-2", Created: *ago(time.Hour), Clusters: 1, Rejected: "slow", Changes: []string{"addons[cni]: removed"}},
			{Number: 1, Name: "platform-1", Created: *ago(2 * time.Hour), Clusters: 2, Ready: 2, WasReady: true}}}, `
AddonStack team/platform

2  platform-2  60m ago  1 cluster, 0 ready; rejected: slow
    addons[cni]: removed

1  platform-1  120m ago  2 clusters, 2 ready; was Ready on all clusters
`},
		"Why": {&summary.Status{Stacks: []summary.Stack{{Namespace: "team", Name: "platform", Ready: metav1.ConditionUnknown}}}, `
STACK           CLUSTERS   READY   FAILED   WAITING   UPDATING   SINCE   VERSIONS
team/platform   0          0       0        0         0          -       

`},
		"Members": {rollout.Decision{Waves: []rollout.Count{{Name: "canary"}, {Name: "rest"}}, Members: [][]rollout.Member{
			{{Cluster: &rollout.Cluster{Name: "a", Since: now.Add(-time.Hour)}, Standing: rollout.Done}},
			{{Cluster: &rollout.Cluster{Name: "b", Away: "Paused"}, Standing: rollout.Away}, {Cluster: &rollout.Cluster{Name: "c", Since: now}, Standing: rollout.Waits}},
		}}, `

WAVE     CLUSTER   STANDING       SINCE
canary   a         done           60m
rest     b         away: Paused   -
rest     c         waits          -
`},
		"WouldGo": {[]summary.Held{{Cause: "StackDeleted", Addons: []string{"default/dns"}, Clusters: []string{"a"}}}, "\ndefault/dns would go from 1 cluster (StackDeleted): a\n"},
		"ChangesMade": {&summary.Changes{Changes: []summary.Change{
			{Time: metav1.NewTime(now.Add(-time.Hour)), Stack: "platform", Addon: "web", Cause: addonsv1.ChangeEdited, From: "1", To: "2", Clusters: []string{"a", "b"}},
			{Time: metav1.NewTime(now.Add(-2 * time.Hour)), Stack: "platform", Cause: addonsv1.ChangeEdited, By: "kubectl-edit", To: "platform-2", Versions: "web 1 -> 2"},
		}}, "\n60m ago   platform/web 1 -> 2: Edited, its AddonStack changed (a, b)\n120m ago  platform: Edited by kubectl-edit, now platform-2; web 1 -> 2\n"},
		"Version": {&summary.Versions{Client: "v1", Instances: []addonsv1.ProviderInstance{{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "chandler"},
			Spec: addonsv1.ProviderInstanceSpec{Version: "v2"}}}}, "\nclient: v1\nsystem/chandler: v2\n"},
	} {
		if got := printed(t, page, c.of); got != c.want {
			t.Errorf("%s: %s", page, got)
		}
	}
}

// Words of charts and clusters don't reach the terminal as they are.
func TestHostileWords(t *testing.T) {
	const hostile = "\x1b]0;x\x07red\x1b[31m\u009b1m\r\u202ea\u2066b\u200bc"
	a := summary.AddonOnCluster{AddonStatus: addonsv1.AddonStatus{Name: "a", Phase: addonsv1.AddonFailed, Version: hostile, Message: hostile}}
	ready := a
	ready.Phase = addonsv1.AddonReady
	s := summary.Stack{Addons: []summary.Addon{{Name: "a", Versions: map[string]int{hostile: 1}}}}
	got := printed(t, "Cluster", &summary.Cluster{Addons: []summary.AddonOnCluster{a, ready}, Conditions: []metav1.Condition{{Message: hostile}}}) +
		printed(t, "Why", &summary.Status{Stacks: []summary.Stack{s}, Failed: []summary.Cause{{Message: hostile}}, Notes: &summary.Notes{Text: hostile}}) +
		printed(t, "Tree", &s) +
		printed(t, "History", &summary.History{Revisions: []summary.Revision{{Rejected: hostile, Changes: []string{hostile}}}}) +
		printed(t, "ChangesMade", &summary.Changes{Changes: []summary.Change{{Addon: "a", From: hostile, To: hostile + "2", By: hostile, Clusters: []string{"a"}}}})
	if strings.ContainsAny(got, "\x1b\x07\r\u009b") || strings.ContainsFunc(got, func(r rune) bool { return unicode.Is(unicode.Cf, r) }) {
		t.Errorf("%q", got)
	}
}

// JSON says the same as before, in characters that a terminal only shows.
func TestEscapedJSON(t *testing.T) {
	const text = "a\tb\n \u009b[2J \u202eb\u2066 \U000e0041 ü"
	data, err := json.Marshal(map[string]string{"message": text})
	must.Succeed(t, err)
	escaped := printing.Escape(string(data))
	var got struct{ Message string }
	must.Succeed(t, json.Unmarshal([]byte(escaped), &got))
	if got.Message != text || printing.Clean(escaped) != escaped || !strings.Contains(escaped, `\u009b[2J \u202eb\u2066 \udb40\udc41 ü`) {
		t.Errorf("%q has %q", escaped, got.Message)
	}
}

// Notes are shown as they are, also where nothing is wrong.
func TestNotes(t *testing.T) {
	got := printed(t, "Why", &summary.Status{Notes: &summary.Notes{Cluster: "a", Text: "\n1. Log in:\n\n    $ open\n"}})
	if want := "\nNothing is wrong\n\nNotes of the chart, as on a:\n1. Log in:\n\n    $ open\n"; got != want {
		t.Errorf("%q", got)
	}
}

func TestColors(t *testing.T) {
	out := &bytes.Buffer{}
	p := &printing.Printer{Out: out, Now: now, Color: true}
	must.Succeed(t, p.Write("Cluster", &summary.Cluster{Name: "a", Ready: metav1.ConditionTrue}))
	if !strings.Contains(out.String(), "\x1b[32mREADY\x1b[0m") {
		t.Errorf("%q", out)
	}
}

// Anybody who may write events may put what a terminal acts on into their reasons.
func TestEventsAreText(t *testing.T) {
	e := &eventsv1.Event{Type: "Warning", Reason: "Failed\x1b[2J", Note: "x\x1b[2J", Regarding: corev1.ObjectReference{Kind: "AddonStack", Name: "web"}}
	if got := printed(t, "Event", e); strings.ContainsRune(got, '\x1b') || !strings.Contains(got, "addonstack/web  Failed?[2J") {
		t.Errorf("%q", got)
	}
}
