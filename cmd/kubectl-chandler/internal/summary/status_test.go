// SPDX-License-Identifier: Apache-2.0

package summary_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/test/must"
)

var noon = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

// cluster returns one of stack platform at revision platform-1, with these add-ons.
func cluster(name string, addons ...addonsv1.AddonStatus) addonsv1.ClusterAddon {
	ca := addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", Revision: "platform-1"}}
	ca.Status.Addons = addons
	ca.Status.Conditions = []metav1.Condition{{Type: addonsv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: noon}}
	return ca
}

func addon(name string, phase addonsv1.AddonPhase, reason, message string) addonsv1.AddonStatus {
	return addonsv1.AddonStatus{Name: name, Namespace: "default", Stack: "platform", Phase: phase, Reason: reason, Message: message, Version: "1.0.0", Since: noon}
}

func with(ca addonsv1.ClusterAddon, c metav1.Condition) addonsv1.ClusterAddon {
	ca.Status.Conditions = append(ca.Status.Conditions, c)
	return ca
}

// heldOut returns one that is held out of changes of stacks.
func heldOut(name, stacks string) addonsv1.ClusterAddon {
	ca := cluster(name, addon("cni", addonsv1.AddonReady, "", ""))
	ca.Annotations = map[string]string{addonsv1.HoldRolloutAnnotation: stacks}
	return ca
}

func fleet(clusters ...addonsv1.ClusterAddon) *observed.Fleet {
	s := addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform"}}
	s.Spec.Addons = []addonsv1.Addon{{Name: "cni"}, {Name: "dns", DependsOn: []string{"cni"}}}
	s.Status.Conditions = []metav1.Condition{{Type: addonsv1.ReadyCondition, Status: metav1.ConditionTrue}}
	return &observed.Fleet{Stacks: []addonsv1.AddonStack{s}, Clusters: clusters}
}

func TestCausesOfClusters(t *testing.T) {
	paused := metav1.Condition{Type: addonsv1.PausedCondition, Status: metav1.ConditionTrue, Reason: addonsv1.PausedReason, LastTransitionTime: noon}
	pausedStack := fleet(cluster("a", addon("cni", addonsv1.AddonReady, "", "")))
	pausedStack.Stacks[0].Status.Conditions = append(pausedStack.Stacks[0].Status.Conditions, paused)
	resumed := paused
	resumed.Status = metav1.ConditionFalse
	resumedStack := fleet()
	resumedStack.Stacks[0].Status.Conditions = append(resumedStack.Stacks[0].Status.Conditions, resumed)
	emptyStack := fleet()
	emptyStack.Stacks[0].Status.Conditions[0].Reason = addonsv1.NoClusterMatchesReason
	for name, tc := range map[string]struct {
		fleet   *observed.Fleet
		verdict summary.Verdict
		failed, waiting,
		progressing []string // the clusters of each cause, with commas
	}{
		"all is well": {fleet(cluster("a", addon("cni", addonsv1.AddonReady, "", ""))), summary.Well, nil, nil, nil},
		"one cause of several clusters": {fleet(
			cluster("a", addon("cni", addonsv1.AddonFailed, "HookFailed", "x")), cluster("b", addon("cni", addonsv1.AddonFailed, "HookFailed", "x")),
			cluster("c", addon("cni", addonsv1.AddonFailed, "HookFailed", "y"))), summary.Failed, []string{"a,b", "c"}, nil, nil},
		"degraded with words of each cluster": {fleet(
			cluster("a", addon("cni", addonsv1.AddonDegraded, "CrashLoopBackOff", "pod x")), cluster("b", addon("cni", addonsv1.AddonDegraded, "CrashLoopBackOff", "pod y"))),
			summary.Failed, []string{"a,b"}, nil, nil},
		"passing by itself": {fleet(
			cluster("a", addon("dns", addonsv1.AddonPending, "WaitingForDependency", "1")), cluster("b", addon("dns", addonsv1.AddonPending, "WaitingForDependency", "2"))),
			summary.Waiting, nil, nil, []string{"a,b"}},
		"an image that no cluster gets": {fleet(
			cluster("a", addon("cni", addonsv1.AddonInstalling, "ImagePullBackOff", "pod x")), cluster("b", addon("cni", addonsv1.AddonInstalling, "ImagePullBackOff", "pod y"))),
			summary.Waiting, nil, []string{"a,b"}, nil},
		"for somebody":                  {fleet(cluster("a", addon("dns", addonsv1.AddonPending, "ValuesNotFound", "Secret x"))), summary.Waiting, nil, []string{"a"}, nil},
		"a source has answered":         {fleet(cluster("a", addon("dns", addonsv1.AddonPending, "ArtifactNotFound", "x"))), summary.Failed, []string{"a"}, nil, nil},
		"a source doesn't answer":       {fleet(cluster("a", addon("dns", addonsv1.AddonPending, "SourceUnavailable", "x"))), summary.Waiting, nil, nil, []string{"a"}},
		"a paused stack, on no cluster": {pausedStack, summary.Waiting, nil, []string{""}, nil},
		"a resumed stack":               {resumedStack, summary.Well, nil, nil, nil},
		"held out of changes":           {fleet(heldOut("a", "platform,gone"), heldOut("b", "*"), cluster("c")), summary.Waiting, nil, []string{"a,b", "a"}, nil},
		"a stack that selects nothing":  {emptyStack, summary.Waiting, nil, []string{""}, nil},
		"what is said of a cluster that can't be worked on is old": {fleet(
			with(cluster("a", addon("cni", addonsv1.AddonFailed, "HookFailed", "x")), paused)), summary.Waiting, nil, []string{"a"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			is := summary.StatusOf(tc.fleet, false)
			if is.Verdict() != tc.verdict {
				t.Errorf("verdict %d, want %d", is.Verdict(), tc.verdict)
			}
			for _, part := range []struct {
				is   []summary.Cause
				want []string
			}{{is.Failed, tc.failed}, {is.Waiting, tc.waiting}, {is.Progressing, tc.progressing}} {
				var got []string
				for _, cause := range part.is {
					got = append(got, strings.Join(cause.Clusters, ","))
				}
				if !slices.Equal(got, part.want) {
					t.Errorf("%v, want %v", got, part.want)
				}
			}
		})
	}
}

func TestCausesOfOthers(t *testing.T) {
	f := fleet()
	f.Instances = []addonsv1.ProviderInstance{{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "chandler"}}}
	f.Instances[0].Status.Conditions = []metav1.Condition{{Type: addonsv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: addonsv1.ScopeTakenReason}}
	f.Stacks[0].Status.Conditions = []metav1.Condition{
		{Type: addonsv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: addonsv1.InvalidPatchReason},
		{Type: addonsv1.ValidCondition, Status: metav1.ConditionFalse, Reason: addonsv1.InvalidPatchReason},
		{Type: addonsv1.RolledOutCondition, Status: metav1.ConditionFalse, Reason: string(addonsv1.RolloutHalted)},
		{Type: addonsv1.SourcesReadyCondition, Status: metav1.ConditionFalse, Reason: "SourceUnavailable"},
	}
	is := summary.StatusOf(f, false)
	var failed []string
	for _, cause := range is.Failed {
		failed = append(failed, cause.Kind+" "+cause.Reason)
	}
	slices.Sort(failed)
	if want := []string{"AddonStack Halted", "AddonStack InvalidPatch", "ProviderInstance ScopeTaken"}; !slices.Equal(failed, want) {
		t.Errorf("%v, want %v", failed, want)
	}
	if len(is.Waiting) != 1 || is.Waiting[0].Reason != "SourceUnavailable" || is.Waiting[0].Meaning == "" {
		t.Errorf("waiting: %+v", is.Waiting)
	}
}

// A source's answer is told once: of the add-on if clusters have that, else of the stack. What the source has answered fails.
func TestSourceIsToldOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		clusters []addonsv1.ClusterAddon
		verdict  summary.Verdict
		failed   int
	}{
		"on clusters":        {"ArtifactNotFound", []addonsv1.ClusterAddon{cluster("a", addon("cni", addonsv1.AddonPending, "ArtifactNotFound", "x"))}, summary.Failed, 1},
		"on none":            {"ArtifactNotFound", nil, summary.Failed, 1},
		"of what is ready":   {"SourceUnauthorized", []addonsv1.ClusterAddon{cluster("a", addon("cni", addonsv1.AddonReady, "", ""))}, summary.Failed, 1},
		"it passes":          {"SourceUnavailable", nil, summary.Waiting, 0},
		"another add-on has": {"SignatureMissing", []addonsv1.ClusterAddon{cluster("a", addon("cni", addonsv1.AddonPending, "ArtifactNotFound", "x"))}, summary.Failed, 2},
	} {
		f := fleet(tc.clusters...)
		f.Stacks[0].Status.Conditions = append(f.Stacks[0].Status.Conditions, metav1.Condition{Type: addonsv1.SourcesReadyCondition, Status: metav1.ConditionFalse, Reason: tc.reason})
		is := summary.StatusOf(f, false)
		if len(is.Failed) != tc.failed || is.Verdict() != tc.verdict {
			t.Errorf("%s: verdict %d, %+v", name, is.Verdict(), is.Failed)
		}
	}
}

func TestStackThatSelectsNoCluster(t *testing.T) {
	f := fleet()
	f.Stacks[0].Status.Conditions = append(f.Stacks[0].Status.Conditions, metav1.Condition{
		Type: addonsv1.ClustersReadyCondition, Status: metav1.ConditionTrue, Reason: addonsv1.NoClusterMatchesReason, Message: "its clusters have env=prod"})
	is := summary.StackStatus(f, &f.Stacks[0])
	if is.Verdict() != summary.Waiting || len(is.Waiting) != 1 || is.Waiting[0].Message != "its clusters have env=prod" {
		t.Errorf("%+v", is)
	}
	if is := summary.StatusOf(f, false); is.Verdict() != summary.Well {
		t.Errorf("among others: %+v", is)
	}
	for _, reason := range []string{addonsv1.NoClusterMatchesReason, addonsv1.TooManyStacksReason} { // it selected some before, or finds no room
		for i := range f.Stacks[0].Status.Conditions {
			c := &f.Stacks[0].Status.Conditions[i]
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, reason, "its clusters have env=prod"
		}
		for _, is := range []*summary.Status{summary.StackStatus(f, &f.Stacks[0]), summary.StatusOf(f, false)} {
			if is.Verdict() != summary.Waiting || len(is.Waiting) != 1 || is.Waiting[0].Reason != reason {
				t.Errorf("%s: %+v", reason, is)
			}
		}
	}
}

// TestSilentInstance has an instance that can't say of itself that it is dead.
func TestSilentInstance(t *testing.T) {
	for name, c := range map[string]struct {
		silent  time.Duration
		verdict summary.Verdict
		reasons []string
	}{
		"it beats":  {40 * time.Second, summary.Well, nil},
		"it is due": {41 * time.Second, summary.Failed, []string{addonsv1.HeartbeatExpiredReason}},
	} {
		f := fleet()
		f.At = noon.Add(c.silent)
		f.Instances = []addonsv1.ProviderInstance{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "chandler"}, Spec: addonsv1.ProviderInstanceSpec{ExpirySeconds: 40},
				Status: addonsv1.ProviderInstanceStatus{HeartbeatTime: metav1.NewMicroTime(noon.Time), Conditions: f.Stacks[0].Status.Conditions}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "it-has-not-begun"}, Spec: addonsv1.ProviderInstanceSpec{ExpirySeconds: 40}},
		}
		is := summary.StatusOf(f, false)
		var got []string
		for _, cause := range is.Failed {
			if got = append(got, cause.Reason); cause.Name != "chandler" || cause.Since == nil || !cause.Since.Equal(&noon) {
				t.Errorf("%s: %+v", name, cause)
			}
		}
		if is.Verdict() != c.verdict || !slices.Equal(got, c.reasons) {
			t.Errorf("%s: verdict %d, %v", name, is.Verdict(), got)
		}
	}
}

// TestAddon has an add-on of a stack whose other one fails, on clusters of which some can't be worked on.
func TestAddon(t *testing.T) {
	paused := metav1.Condition{Type: addonsv1.PausedCondition, Status: metav1.ConditionTrue, Reason: addonsv1.PausedReason, LastTransitionTime: noon}
	ready, failed := addon("cni", addonsv1.AddonReady, "", ""), addon("dns", addonsv1.AddonFailed, "HookFailed", "x")
	for name, c := range map[string]struct {
		clusters        []addonsv1.ClusterAddon
		addon           string
		verdict         summary.Verdict
		failed, waiting []string // the clusters of each cause
	}{
		"it is well":          {[]addonsv1.ClusterAddon{cluster("a", ready, failed), cluster("b", ready)}, "cni", summary.Well, nil, nil},
		"it fails":            {[]addonsv1.ClusterAddon{cluster("a", ready, failed), cluster("b", ready)}, "dns", summary.Failed, []string{"a"}, nil},
		"a cluster is paused": {[]addonsv1.ClusterAddon{with(cluster("a", ready), paused), with(cluster("b", failed), paused)}, "cni", summary.Waiting, nil, []string{"a"}},
		"a cluster lacks it":  {[]addonsv1.ClusterAddon{cluster("a", ready), cluster("b")}, "cni", summary.Waiting, nil, nil},
	} {
		f := fleet(c.clusters...)
		f.Stacks[0].Status.Conditions = []metav1.Condition{{Type: addonsv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: addonsv1.ClustersFailedReason}}
		f.Stacks[0].Status.Clusters = &addonsv1.ClusterCounts{Total: 2}
		is := summary.AddonStatus(f, c.addon)
		if is.Verdict() != c.verdict {
			t.Errorf("%s: verdict %d, want %d", name, is.Verdict(), c.verdict)
		}
		for _, part := range []struct {
			is   []summary.Cause
			want []string
		}{{is.Failed, c.failed}, {is.Waiting, c.waiting}} {
			var got []string
			for _, cause := range part.is {
				got = append(got, cause.Clusters...)
			}
			if !slices.Equal(got, part.want) {
				t.Errorf("%s: %v, want %v", name, got, part.want)
			}
		}
	}
}

func TestHeldAndDrift(t *testing.T) {
	held := &addonsv1.HeldRemoval{Cause: addonsv1.RemovalStackDeleted, Confirmation: "x", Addons: []string{"default/cni"}}
	a, b := cluster("a", addon("cni", addonsv1.AddonReady, "", "")), cluster("b", addon("cni", addonsv1.AddonReady, "", ""))
	a.Spec.Stacks[0].HeldRemoval, b.Spec.Stacks[0].HeldRemoval = held, held
	b.Status.Addons[0].Drift = &addonsv1.AddonDrift{Objects: 3}
	f := fleet(a, b)
	is := summary.StatusOf(f, false)
	if len(is.Held) != 1 || !slices.Equal(is.Held[0].Clusters, []string{"a", "b"}) || is.Verdict() != summary.Waiting {
		t.Errorf("held: %+v", is.Held)
	}
	if is.Drift != (summary.Drift{Objects: 3, Clusters: 1}) {
		t.Errorf("drift: %+v", is.Drift)
	}
	f.Stacks = nil
	if is := summary.StatusOf(f, true); len(is.Held) > 0 || is.Drift.Objects > 0 || is.Verdict() != summary.Well {
		t.Errorf("of no stack: %+v", is)
	}
}

func TestClusterAmongOthers(t *testing.T) {
	bad := addon("cni", addonsv1.AddonFailed, "ManifestInvalid", "x") // whose meaning is that of a row before
	f := fleet(cluster("a", addon("dns", addonsv1.AddonReady, "", ""), bad), cluster("b", bad), cluster("c", addon("cni", addonsv1.AddonReady, "", "")))
	other := cluster("d", addon("cni", addonsv1.AddonReady, "", ""))
	other.Spec.Stacks[0].Revision = "platform-0"
	f.Clusters = append(f.Clusters, other)
	is := summary.ClusterOf(f, &f.Clusters[0])
	first := is.Addons[0]
	if first.Name != "cni" || !slices.Equal(first.SameOn, []string{"b"}) || first.FineOn != 2 || first.AtRevision != 1 || is.Verdict() != summary.Failed {
		t.Errorf("%+v", is)
	}
	if want := reasons.Meaning("ChartInvalid"); first.Meaning != want || want == "" {
		t.Errorf("meaning %q, want %q", first.Meaning, want)
	}
}

func TestClusterHeldOut(t *testing.T) {
	for stacks, want := range map[string][]string{"": {}, "platform": {"platform"}, "*": {"platform"}, "*,gone": {"gone", "platform"}} {
		f := fleet(heldOut("a", stacks))
		is := summary.ClusterOf(f, &f.Clusters[0])
		if !slices.Equal(is.HeldOut, want) || (is.Verdict() == summary.Waiting) != (len(want) > 0) {
			t.Errorf("%q: %v, verdict %d", stacks, is.HeldOut, is.Verdict())
		}
	}
}

// revision keeps the spec of a stack with these add-ons.
func revision(t *testing.T, name string, addons ...addonsv1.Addon) appsv1.ControllerRevision {
	t.Helper()
	data, err := json.Marshal(addonsv1.AddonStackSpec{Addons: addons})
	must.Succeed(t, err)
	return appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: runtime.RawExtension{Raw: data}}
}

func TestHistory(t *testing.T) {
	chart := func(name, version string) addonsv1.Addon {
		return addonsv1.Addon{Name: name, Chart: addonsv1.ChartSource{Path: name, Version: version}}
	}
	revisions := []appsv1.ControllerRevision{
		revision(t, "platform-1", chart("cni", "1.1.0"), chart("new", "1.0.0")),
		revision(t, "platform-0", chart("old", "1.0.0"), chart("cni", "1.0.0")),
	}
	f := fleet(cluster("a"), cluster("b"))
	f.Clusters[0].Status.Stacks = []addonsv1.StackStatus{{Name: "platform", Revision: "platform-1", State: addonsv1.StackReady}}
	h, err := summary.HistoryOf(&f.Stacks[0], revisions, f.Clusters)
	must.Succeed(t, err)
	revisions[1].Annotations = map[string]string{addonsv1.RolloutRejectedAnnotation: "", addonsv1.RolloutAttemptAnnotation: `{"number": 0, "completed": "2026-03-01T12:00:00Z"}`}
	revisions[0].Annotations = map[string]string{addonsv1.RolloutAttemptAnnotation: `{"number": 7, "completed": "2026-03-01T12:00:00Z"}`}
	marked, err := summary.HistoryOf(&f.Stacks[0], revisions, nil)
	must.Succeed(t, err)
	if is := marked.Revisions; is[1].Rejected == "" || !is[1].WasReady || is[0].Rejected != "" || is[0].WasReady {
		t.Errorf("%+v", is)
	}
	is := h.Revisions[0]
	if is.Clusters != 2 || is.Ready != 1 || h.Revisions[1].Clusters != 0 {
		t.Errorf("%+v", h)
	}
	want := []string{"addons[old]: removed", `addons[cni].chart.version: "1.0.0" -> "1.1.0"`, `addons[new]: {"chart":{"path":"new","version":"1.0.0"},"name":"new"}`}
	if !slices.Equal(is.Changes, want) {
		t.Errorf("%q, want %q", is.Changes, want)
	}
}

// All that is printed as JSON has names, and nothing that isn't meant for others.
func TestAsJSON(t *testing.T) {
	f := fleet(cluster("a", addon("cni", addonsv1.AddonFailed, "HookFailed", "x")))
	for _, is := range []any{summary.StatusOf(f, false), summary.ClusterOf(f, &f.Clusters[0]), summary.StackStatus(f, &f.Stacks[0])} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(is)
		must.Succeed(t, err)
		data, err := json.Marshal(content)
		must.Succeed(t, err)
		direct, err := json.Marshal(is)
		must.Succeed(t, err)
		var a, b any
		if json.Unmarshal(data, &a) != nil || json.Unmarshal(direct, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s\n%s", data, direct)
		}
		if !strings.Contains(string(data), `"HookFailed"`) {
			t.Errorf("%s", data)
		}
	}
}

// TestManyClustersFewCauses has a fleet of which a region is down, and on which an image is bad.
func TestManyClustersFewCauses(t *testing.T) {
	unreachable := func(ca addonsv1.ClusterAddon, kind, reason, message string) addonsv1.ClusterAddon {
		return with(ca, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message})
	}
	var clusters []addonsv1.ClusterAddon
	for i := range 200 {
		name := fmt.Sprintf("prod-%03d", i)
		ca, server := cluster(name, addon("cni", addonsv1.AddonReady, "", "")), fmt.Sprintf("10.3.%d.1:6443 ", i)
		origin := "Secret team/" + name + "-kubeconfig"
		switch {
		case i < 80:
			ca = unreachable(ca, addonsv1.ControlPlaneInitializedCondition, addonsv1.ControlPlaneNotInitializedReason,
				"Waiting for status.initialization.controlPlaneInitialized of Cluster "+name)
		case i < 120:
			ca.Status.Addons[0] = addon("cni", addonsv1.AddonDegraded, "ImagePullBackOff", fmt.Sprintf(
				"DaemonSet kube-system/cni: %d of 3 replicas are available. Container cni of pod cni-%05d: ImagePullBackOff, image r.example.org/cni:bad: Back-off pulling image", i%3, 22222+i))
		case i < 140:
			ca = unreachable(ca, addonsv1.ClusterReachableCondition, "ConnectionRefused",
				server+"refuses connections; check that the control plane runs and that the address in "+origin+" is right")
		case i < 150:
			ca = unreachable(ca, addonsv1.ClusterReachableCondition, "TLSFailed",
				server+"fails the TLS handshake: its certificate is for other names; check server and certificate-authority-data in "+origin)
		}
		clusters = append(clusters, ca)
	}
	is := summary.StatusOf(fleet(clusters...), false)
	var sizes []int
	for _, cause := range slices.Concat(is.Failed, is.Waiting, is.Progressing) {
		if sizes = append(sizes, len(cause.Clusters)); !cause.IsExample {
			t.Errorf("the message isn't told as an example: %+v", cause)
		}
	}
	if !slices.Equal(sizes, []int{40, 80, 20, 10}) {
		t.Errorf("causes of %v clusters", sizes)
	}
}

// A cluster that lags behind says of each stack which revision it has, which is the newest, and what that waits for.
func TestRevisionsOfCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *addonsv1.AddonStack, ca *addonsv1.ClusterAddon)
		newest string
		waits  string // a part of what it waits for
	}{
		"it has the newest": {func(*addonsv1.AddonStack, *addonsv1.ClusterAddon) {}, "", ""},
		"it is to have it":  {func(_ *addonsv1.AddonStack, ca *addonsv1.ClusterAddon) { ca.Status.Stacks = nil }, "", "hasn't begun"},
		"it can't be reached": {func(_ *addonsv1.AddonStack, ca *addonsv1.ClusterAddon) {
			ca.Status.Stacks = nil
			*ca = with(*ca, metav1.Condition{Type: addonsv1.ClusterReachableCondition, Status: metav1.ConditionFalse, Reason: "ConnectionRefused"})
		}, "", "the cluster: ConnectionRefused"},
		"the rollout waits": {func(s *addonsv1.AddonStack, _ *addonsv1.ClusterAddon) {
			s.Status.LatestRevision = "platform-2"
			s.Status.Conditions = []metav1.Condition{{Type: addonsv1.RolledOutCondition, Status: metav1.ConditionFalse, Reason: "WaitingForApproval", Message: "Wave all"}}
		}, "platform-2", "WaitingForApproval. Wave all"},
		"it is held": {func(s *addonsv1.AddonStack, ca *addonsv1.ClusterAddon) {
			s.Status.LatestRevision, ca.Annotations = "platform-2", map[string]string{addonsv1.HoldRolloutAnnotation: "platform"}
		}, "platform-2", "hold platform a --release"},
		"a removal is held": {func(s *addonsv1.AddonStack, ca *addonsv1.ClusterAddon) {
			s.Status.LatestRevision, ca.Spec.Stacks[0].HeldRemoval = "platform-2", &addonsv1.HeldRemoval{}
		}, "platform-2", "confirm platform"},
		"it is its turn": {func(s *addonsv1.AddonStack, _ *addonsv1.ClusterAddon) { s.Status.LatestRevision = "platform-2" }, "platform-2", "on the way"},
		"no such stack":  {func(s *addonsv1.AddonStack, _ *addonsv1.ClusterAddon) { s.Name = "other" }, "", "gone"},
	} {
		f := fleet(cluster("a"))
		f.Stacks[0].Status.LatestRevision = "platform-1"
		f.Clusters[0].Status.Stacks = []addonsv1.StackStatus{{Name: "platform", Revision: "platform-1"}}
		tc.change(&f.Stacks[0], &f.Clusters[0])
		is := summary.ClusterOf(f, &f.Clusters[0]).Revisions[0]
		if is.Revision != "platform-1" || is.Newest != tc.newest || !strings.Contains(is.WaitsFor, tc.waits) || (is.WaitsFor == "") != (tc.waits == "") {
			t.Errorf("%s: %+v", name, is)
		}
	}
}

func TestClustersByVersion(t *testing.T) {
	older := addon("cni", addonsv1.AddonReady, "", "")
	older.Version = "0.9.0"
	is := summary.StatusOf(fleet(cluster("a", older), cluster("b", addon("cni", addonsv1.AddonReady, "", ""))), false)
	if on := is.Stacks[0].Addons[0].OnVersion; !slices.Equal(on["0.9.0"], []string{"a"}) || !slices.Equal(on["1.0.0"], []string{"b"}) {
		t.Errorf("%v", on)
	}
}
