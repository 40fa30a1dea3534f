// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/connection"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestSince has an add-on and its stack that change, or don't.
func TestSince(t *testing.T) {
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := then.Add(time.Hour + time.Millisecond)
	type seen struct {
		phase            addonsv1.AddonPhase
		reason, revision string
		unresolved       map[string]unresolvedStack
		uid              string
	}
	undecided := func(s unresolvedStack) map[string]unresolvedStack { return map[string]unresolvedStack{"platform": s} }
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
		"its stack can't be read":      {is: seen{phase: addonsv1.AddonReady, revision: "platform-1", unresolved: undecided(unresolvedStack{state: decide.Undecided})}, stackNow: true, state: addonsv1.StackUnknown},
		"it can't for a moment":        {is: seen{phase: addonsv1.AddonReady, revision: "platform-1", unresolved: undecided(unresolvedStack{state: decide.Undecided, isNew: true})}, state: addonsv1.StackReady},
		"a new one, for a moment":      {is: seen{phase: addonsv1.AddonReady, revision: "platform-2", unresolved: undecided(unresolvedStack{state: decide.Undecided, isNew: true})}, stackNow: true, state: addonsv1.StackProgressing},
		"its removal is held":          {is: seen{phase: addonsv1.AddonReady, revision: "platform-1", unresolved: undecided(unresolvedStack{state: decide.Held})}, state: addonsv1.StackReady},
		"nobody wants it":              {is: seen{phase: addonsv1.AddonUnassigned, revision: "platform-1"}, addonNow: true, stackNow: true, state: addonsv1.StackUnknown},
		"its record isn't proven":      {is: seen{phase: addonsv1.AddonUnassigned, reason: "StackUnknown", revision: "platform-1"}, addonNow: true, state: addonsv1.StackReady},
		"the status is from a backup":  {is: seen{phase: addonsv1.AddonReady, revision: "platform-1", uid: "other"}, addonNow: true, stackNow: true, state: addonsv1.StackReady},
		"an older version made it":     {is: was, neverNoted: true, stackNow: true, state: addonsv1.StackReady},
		"there was nothing before it":  {is: was, none: true, addonNow: true, stackNow: true, state: addonsv1.StackReady},
		"an unread stack is there now": {is: seen{phase: addonsv1.AddonReady, unresolved: undecided(unresolvedStack{state: decide.Undecided, isNew: true})}, none: true, addonNow: true, stackNow: true, state: addonsv1.StackUnknown},
		"nobody looked at all of it":   {is: seen{phase: addonsv1.AddonUpgrading, revision: "platform-1"}, isPart: true, addonNow: true, state: addonsv1.StackReady},
		"nor at all of a new revision": {is: seen{phase: addonsv1.AddonReady, revision: "platform-2"}, isPart: true, stackNow: true, state: addonsv1.StackProgressing},
		"nor at what can't be read":    {is: seen{phase: addonsv1.AddonReady, revision: "platform-2", unresolved: undecided(unresolvedStack{state: decide.Undecided})}, isPart: true, stackNow: true, state: addonsv1.StackUnknown},
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
			noteSince(before, after, now)
			stacks := stackStates(before, after, []addonsv1.StackRevision{{Name: "platform", Revision: tc.is.revision}}, tc.is.unresolved, !tc.isPart, now)
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
			started, wasReady, previous := startOf(tc.was, addonsv1.StackStatus{Name: "platform", Revision: tc.revision, State: tc.is, Since: now})
			if previous != tc.previous || !started.Equal(&tc.started) || (wasReady == nil) != (tc.wasReady == nil) || wasReady != nil && *wasReady != *tc.wasReady {
				t.Errorf("since %s, was ready %v at %s", started, wasReady, previous)
			}
		})
	}
}

// An add-on is in the status before anything of it is in its cluster. A manager that dies in
// between would else not know that this ClusterAddon has run it.
func TestNothingIsInstalledBeforeTheStatusTellsOfIt(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team", Name: name} }
	refusal, written := errors.New("refused"), []addonsv1.AddonStatus(nil)
	hub := fake.NewClientBuilder().WithScheme(hubScheme(t)).WithObjects(
		&addonsv1.AddonStack{ObjectMeta: meta("platform")},
		&appsv1.ControllerRevision{ObjectMeta: meta("platform-1"), Data: runtime.RawExtension{Raw: []byte(`{"clusterSelector":{},"addons":[{"name":"web"}]}`)}},
	).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
			written = o.(*addonsv1.ClusterAddon).Status.Addons
			return refusal
		},
	}).Build()
	ca, cluster := &addonsv1.ClusterAddon{}, &clusterv1.Cluster{}
	ca.Namespace, ca.Name, ca.UID, cluster.Namespace, cluster.Name = "team", "prod", "own", "team", "prod"
	ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", Revision: "platform-1"}}
	conn := connection.To(t, func(w http.ResponseWriter, r *http.Request) {
		if w.WriteHeader(http.StatusNotFound); r.URL.Path != "/api/v1/namespaces/kube-system" { // which cluster it is
			t.Errorf("%s %s was asked", r.Method, r.URL.Path)
		}
	})
	sources, err := source.New(source.Options{})
	must.Succeed(t, err)
	r := &Reconciler{
		Client: hub, statuses: management.Statuses{Client: hub}, Clock: testingclock.NewFakePassiveClock(metav1.Now().Time),
		Sources: sources, records: recordsOf{}, lanes: newLanes(2),
	}
	q := &clusterRun{Reconciler: r, ca: ca, cluster: member.OfCluster(cluster), stored: ca.DeepCopy(), workload: workload.Cluster{Name: "team/prod", Conn: conn}, proofs: &releases.Proofs{}, memory: newMemory()}
	if _, err := r.deliver(t.Context(), q); !errors.Is(err, refusal) {
		t.Errorf("the reconcile continues: %v", err)
	}
	if len(written) != 1 || written[0].Name != "web" || written[0].Phase != addonsv1.AddonPending {
		t.Errorf("the status was to say %+v", written)
	}
	if c := conditions.Get(ca, addonsv1.AddonsReadyCondition); c != nil {
		t.Errorf("something was tried: %+v", c)
	}
}
