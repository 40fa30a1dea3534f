// SPDX-License-Identifier: Apache-2.0

package upgrade_test

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

const (
	before  = addonsv1.UpgradeBeforeControlPlane
	after   = addonsv1.UpgradeAfterControlPlane
	workers = addonsv1.UpgradeAfterWorkers
)

// cluster is one that is asked for a version, and runs others.
func cluster(topology string, controlPlane, workers, plan []string) upgrade.Cluster {
	c := &clusterv1.Cluster{}
	c.Generation, c.Spec.Topology.Version = 7, topology
	c.Status.ControlPlane, c.Status.Workers = &clusterv1.ClusterControlPlaneStatus{}, &clusterv1.WorkersStatus{}
	for _, v := range controlPlane {
		c.Status.ControlPlane.Versions = append(c.Status.ControlPlane.Versions, clusterv1.StatusVersion{Version: v})
	}
	for _, v := range workers {
		c.Status.Workers.Versions = append(c.Status.Workers.Versions, clusterv1.StatusVersion{Version: v})
	}
	for _, v := range plan {
		c.Status.ControlPlane.UpgradePlan = append(c.Status.ControlPlane.UpgradePlan, clusterv1.StatusUpgradePlanVersion{Version: v})
	}
	return upgrade.ClusterOf(c, "")
}

func TestObserve(t *testing.T) {
	type v = []string
	seen := func(from, step, target string) *addonsv1.ClusterUpgrade {
		return &addonsv1.ClusterUpgrade{From: from, Step: step, Target: target}
	}
	answering := func(c upgrade.Cluster, api string) upgrade.Cluster {
		c.API = api
		return c
	}
	older := &clusterv1.Cluster{}
	older.Spec.Topology.Version = "v1.36.0"
	for name, tc := range map[string]struct {
		cluster upgrade.Cluster
		before  *addonsv1.ClusterUpgrade
		want    string // from, step, target, reached, due points; "" for no upgrade
	}{
		"none":                         {cluster: cluster("v1.35.0", v{"v1.35.0"}, v{"v1.35.0"}, nil)},
		"nothing is known":             {cluster: cluster("v1.35.0", nil, nil, nil)},
		"without topology":             {cluster: cluster("", v{"v1.35.0"}, nil, nil)},
		"as a vendor calls it":         {cluster: cluster("v1.35.0", v{"v1.35.0-eks-1"}, v{"v1.35"}, nil)},
		"back, which isn't done":       {cluster: cluster("v1.34.0", v{"v1.35.0"}, v{"v1.35.0"}, nil)},
		"wanted":                       {cluster("v1.36.0", v{"v1.35.0"}, v{"v1.35.0"}, v{"v1.36.0"}), nil, "v1.35.0 v1.36.0 v1.36.0 v1.35.0"},
		"of a patch":                   {cluster("v1.35.4", v{"v1.35.0"}, v{"v1.35.0"}, nil), nil, "v1.35.0 v1.35.4 v1.35.4 v1.35.0"},
		"the control plane changes":    {cluster("v1.36.0", v{"v1.35.0", "v1.36.0"}, v{"v1.35.0"}, nil), seen("v1.35.0", "v1.36.0", "v1.36.0"), "v1.35.0 v1.36.0 v1.36.0 "},
		"it is done":                   {cluster("v1.36.0", v{"v1.36.0"}, v{"v1.35.0"}, nil), seen("v1.35.0", "v1.36.0", "v1.36.0"), "v1.35.0 v1.36.0 v1.36.0 v1.36.0 AfterControlPlane"},
		"so, and that was lost":        {cluster("v1.36.0", v{"v1.36.0"}, v{"v1.35.0"}, nil), nil, "v1.36.0 v1.36.0 v1.36.0 v1.36.0 AfterControlPlane"},
		"the workers are":              {cluster("v1.36.0", v{"v1.36.0"}, v{"v1.36.0"}, nil), seen("v1.35.0", "v1.36.0", "v1.36.0"), "v1.35.0 v1.36.0 v1.36.0 v1.36.0 AfterControlPlane AfterWorkers"},
		"that was lost":                {cluster: cluster("v1.36.0", v{"v1.36.0"}, v{"v1.36.0"}, nil)},
		"no workers":                   {cluster("v1.36.0", v{"v1.36.0"}, nil, nil), seen("v1.35.0", "v1.36.0", "v1.36.0"), "v1.35.0 v1.36.0 v1.36.0 v1.36.0 AfterControlPlane AfterWorkers"},
		"chained":                      {cluster("v1.36.1", v{"v1.34.0"}, v{"v1.34.0"}, v{"v1.35.4", "v1.36.1"}), nil, "v1.34.0 v1.35.4 v1.36.1 v1.34.0"},
		"chained, without a plan":      {cluster("v1.36.1", v{"v1.34.0"}, v{"v1.34.0"}, nil), nil, "v1.34.0 v1.35.0 v1.36.1 v1.34.0"},
		"then there is a plan":         {cluster("v1.36.1", v{"v1.34.0"}, v{"v1.34.0"}, v{"v1.35.4", "v1.36.1"}), seen("v1.34.0", "v1.35.0", "v1.36.1"), "v1.34.0 v1.35.4 v1.36.1 v1.34.0"},
		"a step is asked for":          {cluster("v1.36.1", v{"v1.34.0"}, v{"v1.34.0"}, v{"v1.36.1"}), seen("v1.34.0", "v1.35.4", "v1.36.1"), "v1.34.0 v1.35.4 v1.36.1 v1.34.0"},
		"a step is done":               {cluster("v1.36.1", v{"v1.35.4"}, v{"v1.34.0"}, v{"v1.36.1"}), seen("v1.34.0", "v1.35.4", "v1.36.1"), "v1.34.0 v1.36.1 v1.36.1 v1.35.4 AfterControlPlane"},
		"another target in the middle": {cluster("v1.36.2", v{"v1.35.4"}, v{"v1.34.0"}, v{"v1.36.2"}), seen("v1.34.0", "v1.35.4", "v1.36.1"), "v1.35.4 v1.36.2 v1.36.2 v1.35.4"},
		"an old plan":                  {cluster("v1.36.2", v{"v1.35.4"}, nil, v{"v1.36.1"}), nil, "v1.35.4 v1.36.2 v1.36.2 v1.35.4"},
		"machines without a topology":  {cluster("", v{"v1.36.0"}, v{"v1.35.0", "v1.36.0"}, nil), nil, "v1.36.0 v1.36.0 v1.36.0 v1.36.0 AfterControlPlane"},
		"a control plane without one":  {cluster("", v{"v1.35.0", "v1.36.0"}, v{"v1.35.0"}, nil), nil, "v1.35.0 v1.36.0 v1.36.0 "},

		// An API server that is still the old one is asked by everything that is delivered.
		"an old API server answers":          {answering(cluster("v1.36.0", v{"v1.36.0"}, nil, nil), "v1.35.9"), nil, "v1.36.0 v1.36.0 v1.36.0 "},
		"the new one does, as it calls that": {answering(cluster("v1.36.0", v{"v1.36.0"}, nil, nil), "v1.36.3+vendor"), seen("v1.35.0", "v1.36.0", "v1.36.0"), "v1.35.0 v1.36.0 v1.36.0 v1.36.0 AfterControlPlane AfterWorkers"},

		// Before Cluster API 1.14 the API server alone tells what runs.
		"an older Cluster API":                {upgrade.ClusterOf(older, "v1.35.4"), nil, "v1.35.4 v1.36.0 v1.36.0 v1.35.4"},
		"an older one, and it is done":        {cluster: upgrade.ClusterOf(older, "v1.36.9-eks-2")},
		"an older one, and no server answers": {cluster: upgrade.ClusterOf(older, "")},
	} {
		t.Run(name, func(t *testing.T) {
			u, got := upgrade.Observe(tc.cluster, tc.before), ""
			if u != nil {
				got = fmt.Sprintf("%s %s %s %s", u.From, u.Step, u.Target, u.Reached)
				for _, point := range []addonsv1.UpgradePoint{after, workers} {
					if u.IsDue(point) {
						got += " " + string(point)
					}
				}
			}
			if got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// TestEveryUpgradeEnds walks upgrades as Cluster API does, which waits at each gate, with add-ons
// that become ready at some time. What was seen before may get lost at any moment.
func TestEveryUpgradeEnds(t *testing.T) {
	for seed := range int64(2000) {
		random := rand.New(rand.NewSource(seed))
		from := 30 + random.Intn(3)
		target := from + 1 + random.Intn(3)
		name := func(minor int) string { return fmt.Sprintf("v1.%d.0", minor) }
		controlPlane, worker := from, from
		var plan []string
		for minor := from + 1; minor <= target; minor++ {
			plan = append(plan, name(minor))
		}
		var status *addonsv1.ClusterUpgrade
		now := time.Unix(0, 0)
		unready := map[addonsv1.UpgradePoint]int{before: random.Intn(3), after: random.Intn(3), workers: random.Intn(3)}
		asked := 0
		look := func(controlPlanes ...string) {
			if random.Intn(10) == 0 {
				status = nil
			}
			now = now.Add(time.Second)
			var workersRun []string
			if worker > 0 {
				workersRun = []string{name(worker)}
			}
			c := cluster(name(target), controlPlanes, workersRun, plan)
			var causes upgrade.Causes
			u := upgrade.Observe(c, status)
			for point, left := range unready {
				if left > 0 && u.IsDue(point) {
					causes.Waiting = append(causes.Waiting, upgrade.Cause{Point: point, Message: "later", Hold: upgrade.HoldOf(nil)})
					unready[point]--
				}
			}
			status = u.Status(c, causes, status, now)
		}
		mayGoOn := func(point addonsv1.UpgradePoint, version string) bool {
			left := unready[point] > 0
			look(name(controlPlane))
			if asked++; asked > 200 {
				t.Fatalf("seed %d: it never ends: %s %s: %+v", seed, point, version, status)
			}
			ca := &addonsv1.ClusterAddon{}
			ca.Status.GatesUpgrades, ca.Status.Upgrade = ptr.To(true), status
			q := upgrade.Question{Point: point, Version: version, Target: name(target), Generation: 7}
			goesOn := upgrade.AnswerOf(q, ca, nil, now).RetryAfter == 0
			// What was seen before may have got lost. Then nobody knows that there was a step, or an upgrade.
			lost := status == nil || status.From == name(controlPlane)
			if goesOn && left && (point == before || !lost) {
				t.Fatalf("seed %d: it continues at %s %s: %+v", seed, point, version, status)
			}
			return goesOn
		}
		await := func(point addonsv1.UpgradePoint, version string) {
			for goesOn := false; !goesOn; {
				goesOn = mayGoOn(point, version)
			}
		}
		for len(plan) > 0 {
			step := plan[0]
			await(before, step)
			plan = plan[1:]
			look(name(controlPlane))
			look(name(controlPlane), step)
			if status.Step != step && status.From != name(controlPlane) {
				t.Fatalf("seed %d: on the way to %s: %+v", seed, step, status)
			}
			controlPlane++
			await(after, step)
		}
		worker = target
		await(workers, name(target))
		for range 20 {
			look(name(controlPlane))
		}
		if status != nil {
			t.Fatalf("seed %d: all is done: %+v", seed, status)
		}
	}
}

func TestGates(t *testing.T) {
	c := cluster("v1.36.0", []string{"v1.35.0"}, nil, []string{"v1.36.0"})
	u := upgrade.Observe(c, nil)
	start := time.Unix(1000, 0)
	cause := func(hold upgrade.Hold) upgrade.Cause {
		return upgrade.Cause{Point: before, Reason: addonsv1.UpgradeAddonsNotReadyReason, Message: "cni isn't ready", Hold: hold}
	}
	short, long, forever := upgrade.Hold{Time: time.Minute}, upgrade.Hold{Time: time.Hour}, upgrade.Hold{Time: time.Minute, Forever: true}
	for name, tc := range map[string]struct {
		causes upgrade.Causes
		after  time.Duration
		state  addonsv1.GateState
		reason string
		until  time.Duration // from the start
	}{
		"nothing":                  {state: addonsv1.GateOpen, reason: addonsv1.UpgradeAllowedReason},
		"waiting":                  {causes: upgrade.Causes{Waiting: []upgrade.Cause{cause(short)}}, after: 59 * time.Second, state: addonsv1.GateWaiting, reason: addonsv1.UpgradeAddonsNotReadyReason, until: time.Minute},
		"long enough":              {causes: upgrade.Causes{Waiting: []upgrade.Cause{cause(short)}}, after: time.Minute, state: addonsv1.GateExpired, reason: addonsv1.UpgradeHoldExpiredReason},
		"for another":              {causes: upgrade.Causes{Waiting: []upgrade.Cause{cause(short), cause(long)}}, after: time.Minute, state: addonsv1.GateWaiting, reason: addonsv1.UpgradeAddonsNotReadyReason, until: time.Hour},
		"for ever":                 {causes: upgrade.Causes{Waiting: []upgrade.Cause{cause(forever)}}, after: 1000 * time.Hour, state: addonsv1.GateWaiting, reason: addonsv1.UpgradeAddonsNotReadyReason},
		"not at all":               {causes: upgrade.Causes{Waiting: []upgrade.Cause{cause(upgrade.Hold{})}}, state: addonsv1.GateOpen, reason: addonsv1.UpgradeAllowedReason},
		"skipped":                  {causes: upgrade.Causes{Waiting: []upgrade.Cause{cause(forever)}, Skip: true}, state: addonsv1.GateSkipped, reason: addonsv1.UpgradeGatesSkippedReason},
		"nothing to skip":          {causes: upgrade.Causes{Skip: true}, state: addonsv1.GateOpen, reason: addonsv1.UpgradeAllowedReason},
		"closed":                   {causes: upgrade.Causes{Closed: upgrade.Closed{Reason: addonsv1.UpgradeNoCompatibleVersionReason, Message: "not for 1.36"}}, after: 1000 * time.Hour, state: addonsv1.GateClosed, reason: addonsv1.UpgradeNoCompatibleVersionReason},
		"closed, and that's known": {causes: upgrade.Causes{Closed: upgrade.Closed{Reason: addonsv1.UpgradeNoCompatibleVersionReason, Message: "not for 1.36"}, Skip: true}, state: addonsv1.GateSkipped, reason: addonsv1.UpgradeGatesSkippedReason},
		"another point":            {causes: upgrade.Causes{Waiting: []upgrade.Cause{{Point: after, Hold: long}}}, state: addonsv1.GateOpen, reason: addonsv1.UpgradeAllowedReason},
	} {
		t.Run(name, func(t *testing.T) {
			first := u.Status(c, tc.causes, nil, start)
			got := u.Status(c, tc.causes, first, start.Add(tc.after)).Gates
			if len(got) != 1 || got[0].Point != before || got[0].Version != "v1.36.0" || got[0].State != tc.state || got[0].Reason != tc.reason ||
				!got[0].Since.Time.Equal(start) || got[0].State != addonsv1.GateOpen && got[0].Message == "" {
				t.Fatalf("%+v", got)
			}
			want := time.Time{}
			if tc.until > 0 {
				want = start.Add(tc.until)
			}
			if !got[0].Deadline.Time.Equal(want) || !upgrade.Deadline(&addonsv1.ClusterUpgrade{Gates: got}).Equal(want) {
				t.Errorf("until %v, want %v", got[0].Deadline, want)
			}
		})
	}
}

func TestCondition(t *testing.T) {
	asked, unasked := &upgrade.Upgrade{Asked: true}, &upgrade.Upgrade{}
	gate := func(state addonsv1.GateState, reason string) addonsv1.UpgradeGate {
		return addonsv1.UpgradeGate{Point: before, Version: "v1.36.0", State: state, Reason: reason, Message: "why"}
	}
	for _, tc := range []struct {
		u      *upgrade.Upgrade
		gates  []addonsv1.UpgradeGate
		status metav1.ConditionStatus
		reason string
	}{
		{asked, nil, metav1.ConditionTrue, addonsv1.UpgradeAllowedReason},
		{asked, []addonsv1.UpgradeGate{gate(addonsv1.GateWaiting, "AddonsNotReady")}, metav1.ConditionFalse, "AddonsNotReady"},
		{asked, []addonsv1.UpgradeGate{gate(addonsv1.GateExpired, "HoldExpired"), gate(addonsv1.GateClosed, "NoCompatibleVersion")}, metav1.ConditionFalse, "NoCompatibleVersion"},
		{asked, []addonsv1.UpgradeGate{gate(addonsv1.GateClosed, "NoCompatibleVersion"), gate(addonsv1.GateOpen, "UpgradeAllowed")}, metav1.ConditionFalse, "NoCompatibleVersion"},
		{asked, []addonsv1.UpgradeGate{gate(addonsv1.GateExpired, "HoldExpired")}, metav1.ConditionTrue, "HoldExpired"},
		{unasked, []addonsv1.UpgradeGate{gate(addonsv1.GateWaiting, "AddonsNotReady")}, metav1.ConditionUnknown, "NotAsked"},
		{asked, []addonsv1.UpgradeGate{gate(addonsv1.GatePassed, "NotAsked")}, metav1.ConditionUnknown, "NotAsked"},
		{asked, []addonsv1.UpgradeGate{gate(addonsv1.GatePassed, "NotAsked"), gate(addonsv1.GateWaiting, "AddonsNotReady")}, metav1.ConditionUnknown, "NotAsked"},
	} {
		c := tc.u.Condition(&addonsv1.ClusterUpgrade{Gates: tc.gates})
		if c.Status != tc.status || c.Reason != tc.reason || (c.Reason != addonsv1.UpgradeAllowedReason) != (c.Message != "") {
			t.Errorf("%+v: %+v", tc.gates, c)
		}
	}
}

// What went on though it was held was never asked. Once the upgrade is done, nobody needs to know any more.
func TestPassed(t *testing.T) {
	start := time.Unix(1000, 0)
	previous, changes, next := []string{"v1.35.0"}, []string{"v1.35.0", "v1.36.0"}, []string{"v1.36.0"}
	waiting := upgrade.Causes{Waiting: []upgrade.Cause{{Point: before, Message: "cni isn't ready", Hold: upgrade.Hold{Time: time.Minute}}}}
	for name, tc := range map[string]struct {
		causes upgrade.Causes // at first
		after  time.Duration
		skip   bool
		passed bool
	}{
		"held":                       {causes: waiting, passed: true},
		"closed":                     {causes: upgrade.Causes{Closed: upgrade.Closed{Reason: "x", Message: "y"}}, passed: true},
		"open":                       {},
		"for long enough":            {causes: waiting, after: time.Minute},
		"skipped as nobody looked":   {causes: waiting, skip: true},
		"held for nearly that while": {causes: waiting, after: time.Minute - 1, passed: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster("v1.36.0", previous, previous, next)
			status := upgrade.Observe(c, nil).Status(c, tc.causes, nil, start)
			for i, controlPlane := range [][]string{changes, changes, next, next} {
				c = cluster("v1.36.0", controlPlane, previous, nil)
				u := upgrade.Observe(c, status)
				status = u.Status(c, upgrade.Causes{Skip: tc.skip}, status, start.Add(tc.after+time.Duration(i)*time.Hour))
				passed := len(status.Gates) > 0 && status.Gates[0].Point == before && status.Gates[0].State == addonsv1.GatePassed
				if passed != tc.passed || (u.Condition(status).Reason == addonsv1.UpgradeNotAskedReason) != tc.passed {
					t.Fatalf("step %d: %+v", i, status)
				}
			}
			c = cluster("v1.36.0", next, next, nil)
			if status = upgrade.Observe(c, status).Status(c, upgrade.Causes{}, status, start); status != nil {
				t.Errorf("all is done: %+v", status)
			}
		})
	}
}

// A cluster that doesn't answer opens nothing that was closed, or that waits for longer.
func TestUnseen(t *testing.T) {
	c := cluster("v1.36.0", []string{"v1.35.0"}, nil, nil)
	u := upgrade.Observe(c, nil)
	start := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		causes upgrade.Causes
		state  addonsv1.GateState
	}{
		"ready":    {upgrade.Causes{}, addonsv1.GateExpired},
		"a day":    {upgrade.Causes{Waiting: []upgrade.Cause{{Point: before, Message: "x", Hold: upgrade.Hold{Time: 24 * time.Hour}}}}, addonsv1.GateWaiting},
		"for ever": {upgrade.Causes{Waiting: []upgrade.Cause{{Point: before, Message: "x", Hold: upgrade.Hold{Time: 1, Forever: true}}}}, addonsv1.GateWaiting},
		"closed":   {upgrade.Causes{Closed: upgrade.Closed{Reason: addonsv1.UpgradeNoCompatibleVersionReason, Message: "not for 1.36"}}, addonsv1.GateClosed},
	} {
		t.Run(name, func(t *testing.T) {
			status := u.Status(c, tc.causes, nil, start)
			for i := range 3 {
				status = u.Status(c, upgrade.Unseen(status, false), status, start.Add(time.Duration(i)*time.Hour))
			}
			if got := status.Gates[0]; got.State != tc.state {
				t.Errorf("%+v", got)
			}
		})
	}
}
