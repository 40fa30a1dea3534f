// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/delivery"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/upgrade"
	"github.com/cluster-chandler/chandler/test/addons"
	"github.com/cluster-chandler/chandler/test/connection"
	"github.com/cluster-chandler/chandler/test/must"
)

// deliveryTo returns what delivers the wanted add-ons to a cluster.
func deliveryTo(c *addons.Cluster) delivery.Delivery {
	return delivery.Delivery{
		Observed: &c.Observed, Inputs: c.Inputs, Renderer: c.Renderer(), Deliverer: c.Deliverer, Workload: c.Workload, Watched: c.Watched, Proofs: c.Proofs,
		Memory: c.Memory, Turns: &delivery.InputTurns{}, Beside: delivery.NewBeside(1, nil), Clock: testingclock.NewFakePassiveClock(c.Now),
	}
}

// What a stack installed stays its own while nobody knows what it wants: its revision may come a moment later than that of
// another stack.
func TestClaims(t *testing.T) {
	both := []wanted.Addon{addons.Wanted("a", "web"), addons.Wanted("b", "web")}
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
		installed, unresolved := map[deliver.Release]deliver.Summary{}, map[string]gather.Unresolved{}
		if tc.installed != "none" {
			installed[both[0].Release()] = deliver.Summary{Release: both[0].Release(), Terms: deliver.Terms{Stack: tc.installed}}
		}
		if tc.undecided != "none" {
			unresolved[tc.undecided] = gather.Unresolved{State: decide.Undecided}
		}
		assigned := []addonsv1.StackRevision{{Name: "gone"}}
		if tc.moved {
			assigned[0].MovedAddons = []string{both[0].Release().String()}
		}
		if got := delivery.Holders(both, installed, unresolved, assigned)[both[0].Release()]; got != tc.want {
			t.Errorf("%s: %q got it", name, got)
		}
	}
}

// An add-on that waits for a point of an upgrade runs as it was, so it keeps nobody from being changed.
func TestHeldBackAddonKeepsNobodyWaiting(t *testing.T) {
	for runs, status := range map[bool]string{true: deliver.StatusDeployed, false: "failed"} {
		c := addons.Given(t)
		cni, record := c.Install(t, "cni", func(a *wanted.Addon) {
			a.Lifecycle = &addonsv1.AddonLifecycle{Upgrade: addonsv1.UpgradeAfterControlPlane}
		})
		record.Status = status
		c.Record(record)
		web, _ := c.Install(t, "web", func(a *wanted.Addon) { a.DependsOn = []string{"cni"} })
		c.Wanted = []wanted.Addon{cni, web}
		c.Upgrade = &upgrade.Upgrade{From: "v1.24.0", Reached: "v1.24.0", Target: "v1.25.0", Step: "v1.25.0", Steps: []string{"v1.25.0"}}
		all, _ := deliveryTo(c).Ensure(t.Context())
		if got := all.Statuses[0].Reason; got != reasons.WaitingForControlPlane {
			t.Errorf("%s: cni is %+v", status, all.Statuses[0])
		}
		if waits := all.Statuses[1].Reason == reasons.WaitingForDependency; waits == runs {
			t.Errorf("%s: web is %+v", status, all.Statuses[1])
		}
	}
}

// The record of an add-on says what a removal does. An add-on isn't Ready while its record can't be brought up to date.
func TestUnwrittenTerms(t *testing.T) {
	for _, unwritten := range []bool{false, true} {
		c := addons.Given(t)
		a, record := c.Install(t, "web", func(*wanted.Addon) {})
		in, err := c.Inputs.Of(t.Context(), &a, record)
		must.Succeed(t, err)
		record.Digest, record.Terms = in.Digest(job.FactsUsed{}), delivery.TermsOf(&a, record, in, true)
		if unwritten {
			record.DataPolicy = addonsv1.DataPolicyDelete
		}
		c.Record(record)
		c.Wanted, c.ClusterAddon.Status.Addons = []wanted.Addon{a}, []addonsv1.AddonStatus{releases.Status(record, addonsv1.AddonReady)}
		all, _ := deliveryTo(c).Ensure(t.Context()) // the cluster refuses each write
		if is := all.Statuses[0]; (is.Phase == addonsv1.AddonReady) == unwritten || (is.Reason == reasons.Retrying) != unwritten || (all.Err != nil) != unwritten {
			t.Errorf("unwritten=%t: %+v, %v", unwritten, is, all.Err)
		}
	}
}

// Once a cluster doesn't answer, the add-ons that come after that are as they were.
func TestSilentClusterIsAskedNoMore(t *testing.T) {
	c := addons.Given(t)
	c.Workload.Conn = connection.To(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for _, name := range []string{"first", "second"} {
		a, record := c.Install(t, name, func(a *wanted.Addon) {
			if name == "second" {
				a.DependsOn = []string{"first"}
			}
		})
		in, err := c.Inputs.Of(t.Context(), &a, record)
		must.Succeed(t, err)
		record.Digest, record.Terms = in.Digest(job.FactsUsed{}), delivery.TermsOf(&a, record, in, true)
		record.DataPolicy = addonsv1.DataPolicyDelete // which is to be written
		c.Record(record)
		c.Wanted, c.ClusterAddon.Status.Addons = append(c.Wanted, a), append(c.ClusterAddon.Status.Addons, releases.Status(record, addonsv1.AddonReady))
	}
	all, _ := deliveryTo(c).Ensure(t.Context())
	if !all.Unreachable || all.Err == nil || strings.Contains(all.Err.Error(), "add-on second") {
		t.Errorf("unreachable: %t, %v", all.Unreachable, all.Err)
	}
	if diff := cmp.Diff(c.ClusterAddon.Status.Addons, all.Statuses); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A panic is one add-on's failure: the delivery has nothing to act with, and continues with the next.
func TestPanicIsOneAddonsFailure(t *testing.T) {
	o := &gather.Observed{ClusterAddon: &addonsv1.ClusterAddon{}, Stacks: gather.Stacks{Wanted: []wanted.Addon{addons.Wanted("a", "web"), addons.Wanted("a", "db")}}}
	all, _ := delivery.Delivery{Observed: o, Deliverer: deliver.New(deliver.Options{}), Beside: delivery.NewBeside(1, nil), Workload: workload.Cluster{Name: "team/prod"}}.Ensure(t.Context())
	if len(all.Statuses) != 2 || all.RetryAfter != retry.Panic {
		t.Errorf("%+v, again in %s", all.Statuses, all.RetryAfter)
	}
	for _, s := range all.Statuses {
		if s.Phase != addonsv1.AddonFailed || s.Reason != deliver.ReasonInternalError {
			t.Errorf("%+v", s)
		}
	}
}

// While an assignment is outdated, its add-ons are what they were: the delivery has nothing to act with, and would panic.
func TestAddonsOfAnOutdatedAssignment(t *testing.T) {
	was := addonsv1.AddonStatus{Name: "web", Namespace: "default", Stack: "a", Phase: addonsv1.AddonReady, Version: "1.2.3"}
	outdated, added := addons.Wanted("a", "web"), addons.Wanted("a", "new")
	outdated.Outdated, added.Outdated = true, true
	o := &gather.Observed{ClusterAddon: &addonsv1.ClusterAddon{}, Stacks: gather.Stacks{Wanted: []wanted.Addon{outdated, added}}}
	o.ClusterAddon.Status.Addons = []addonsv1.AddonStatus{was}
	all, _ := delivery.Delivery{Observed: o, Deliverer: deliver.New(deliver.Options{}), Beside: delivery.NewBeside(1, nil)}.Ensure(t.Context())
	want := []addonsv1.AddonStatus{was, {Name: "new", Namespace: "default", Stack: "a", Phase: addonsv1.AddonPending}}
	if diff := cmp.Diff(want, all.Statuses); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// An add-on that isn't changed for a reason that the assignment or the stack has says which.
func TestAddonsThatStay(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*wanted.Addon)
		was    addonsv1.AddonPhase
		phase  addonsv1.AddonPhase
		reason string
	}{
		"its stack is paused":               {func(a *wanted.Addon) { a.Paused = true }, addonsv1.AddonReady, addonsv1.AddonPending, reasons.StackPaused},
		"its stack is paused, and it fails": {func(a *wanted.Addon) { a.Paused = true }, addonsv1.AddonFailed, addonsv1.AddonFailed, deliver.ReasonHookFailed},
		"it depends on what isn't there":    {func(a *wanted.Addon) { a.DependsOn = []string{"cni"} }, addonsv1.AddonReady, addonsv1.AddonPending, reasons.WaitingForDependency},
	} {
		c := addons.Given(t)
		a, record := c.Install(t, "web", func(*wanted.Addon) {})
		status := releases.Status(record, tc.was)
		status.Reason = deliver.ReasonHookFailed
		c.ClusterAddon.Status.Addons = []addonsv1.AddonStatus{status}
		tc.change(&a)
		c.Wanted = []wanted.Addon{a}
		all, _ := deliveryTo(c).Ensure(t.Context())
		if is := all.Statuses[0]; is.Phase != tc.phase || is.Reason != tc.reason {
			t.Errorf("%s: %+v", name, is)
		}
	}
}
