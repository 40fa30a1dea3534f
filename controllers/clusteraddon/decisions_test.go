// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/upgrade"
	"github.com/cluster-chandler/chandler/test/addons"
	"github.com/cluster-chandler/chandler/test/must"
)

// registered has an add-on of a chart in a registry installed.
func registered(t *testing.T, q *clusterRun, name string, change func(*wanted.Addon)) (wanted.Addon, deliver.Summary) {
	a, record := addons.InRegistry(t, q.Sources, name, change)
	q.installed[record.Release] = record
	q.proofs.Note(record.Release, record.Proof())
	return a, record
}

// An add-on that waits for a point of an upgrade runs as it was, so it keeps nobody from being changed.
func TestHeldBackAddonKeepsNobodyWaiting(t *testing.T) {
	for runs, status := range map[bool]string{true: deliver.StatusDeployed, false: "failed"} {
		q, _ := askedCluster(t)
		cni, record := registered(t, q, "cni", func(a *wanted.Addon) {
			a.Lifecycle = &addonsv1.AddonLifecycle{Upgrade: addonsv1.UpgradeAfterControlPlane}
		})
		record.Status = status
		q.installed[record.Release] = record
		q.proofs.Note(record.Release, record.Proof())
		web, _ := registered(t, q, "web", func(a *wanted.Addon) { a.DependsOn = []string{"cni"} })
		q.wanted = []wanted.Addon{cni, web}
		q.upgrade = &upgrade.Upgrade{From: "v1.24.0", Reached: "v1.24.0", Target: "v1.25.0", Step: "v1.25.0", Steps: []string{"v1.25.0"}}
		all, _ := delivery{q}.ensureAll(t.Context())
		if got := all.statuses[0].Reason; got != reasons.WaitingForControlPlane {
			t.Errorf("%s: cni is %+v", status, all.statuses[0])
		}
		if waits := all.statuses[1].Reason == reasons.WaitingForDependency; waits == runs {
			t.Errorf("%s: web is %+v", status, all.statuses[1])
		}
	}
}

// The record of an add-on says what a removal does. An add-on isn't Ready while its record can't be brought up to date.
func TestUnwrittenTerms(t *testing.T) {
	for _, unwritten := range []bool{false, true} {
		q, _ := askedCluster(t) // which refuses each write
		a, record := registered(t, q, "web", func(*wanted.Addon) {})
		in, err := q.reader().Of(t.Context(), &a, record)
		must.Succeed(t, err)
		record.Digest, record.Terms = in.Digest(job.FactsUsed{}), termsOf(&a, record, in, true)
		if unwritten {
			record.DataPolicy = addonsv1.DataPolicyDelete
		}
		q.installed[record.Release] = record
		q.proofs.Note(record.Release, record.Proof())
		q.ca.Status.Addons = []addonsv1.AddonStatus{releases.Status(record, addonsv1.AddonReady)}
		one := delivery{q}.ensure(t.Context(), delivery{q}.turnOf(&a, "platform", false, nil))
		if is := one.status; (is.Phase == addonsv1.AddonReady) == unwritten || (is.Reason == reasons.Retrying) != unwritten || (one.err != nil) != unwritten {
			t.Errorf("unwritten=%t: %+v, %v", unwritten, is, one.err)
		}
	}
}

// While a removal of its stack is held, an add-on that may come in the place of another one isn't installed.
func TestNothingIsInstalledBesideAHeldRemoval(t *testing.T) {
	for _, held := range []bool{true, false} {
		q, _ := askedCluster(t)
		a := addons.Wanted("platform", "next")
		a.DependsOn = []string{"previous"}
		q.ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform"}}
		if held {
			q.ca.Spec.Stacks[0].HeldRemoval = &addonsv1.HeldRemoval{Addons: []string{"default/previous"}}
		}
		turn := delivery{q}.turnOf(&a, "platform", false, nil)
		turn.facts.Comparison, turn.in = decide.Different, &inputs.Inputs{Addon: &a}
		one := delivery{q}.ensure(t.Context(), turn)
		if got := one.status.Reason == reasons.WaitingForConfirmation; got != held {
			t.Errorf("held %t: %+v", held, one.status)
		}
	}
}

// Add-ons whose removal somebody has to confirm stay, and nothing else that its stack has no more.
func TestHeldAddonsStay(t *testing.T) {
	web, other, going := addons.Installed("platform", "web"), addons.Installed("platform", "other"), addons.Installed("platform", "going")
	going.Status = deliver.StatusUninstalling
	q, _ := askedCluster(t, web, other, going)
	q.ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", HeldRemoval: &addonsv1.HeldRemoval{Addons: []string{"apps/going", "apps/web"}}}}
	leaving, kept := removal{q}.unwanted()
	if len(kept) != 1 || kept[0].Name != "web" {
		t.Errorf("kept: %+v", kept)
	}
	if len(leaving) != 2 || slices.ContainsFunc(leaving, func(r deliver.Summary) bool { return r.Name == "web" }) {
		t.Errorf("leaving: %+v", leaving)
	}
}

// hubScheme has the types of a management cluster.
func hubScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	must.Succeed(t, errors.Join(clientgoscheme.AddToScheme(scheme), addonsv1.AddToScheme(scheme)))
	return scheme
}

// A revision with a field that this program doesn't know isn't used: the field may restrict what the stack asks for.
func TestRevisionWithUnknownFieldsIsNotRead(t *testing.T) {
	revision := func(name, spec string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Data: runtime.RawExtension{Raw: []byte(spec)}}
	}
	r := stackReader{namespace: "team", cache: fake.NewClientBuilder().WithScheme(hubScheme(t)).WithObjects(
		revision("a-1", `{"addons":[{"name":"web"}]}`), revision("b-1", `{"addons":[{"name":"web"}],"later":true}`)).Build()}
	all, err := r.read(t.Context(), []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}, {Name: "b", Revision: "b-1"}})
	must.Succeed(t, err)
	if all[0].spec == nil || len(all[0].unknown) > 0 {
		t.Errorf("a: %+v", all[0])
	}
	if all[1].spec != nil || !slices.Equal(all[1].unknown, []string{"spec.later"}) {
		t.Errorf("b: %+v", all[1])
	}
}

// An upgrade of Kubernetes holds removals that haven't begun.
func TestUpgradeHoldsRemovals(t *testing.T) {
	record, going := addons.Installed("platform", "web"), addons.Installed("platform", "web")
	going.Status = deliver.StatusUninstalling
	for name, tc := range map[string]struct {
		upgrade *upgrade.Upgrade
		record  deliver.Summary
		absent  bool
		want    bool
	}{
		"there is none":                      {record: record},
		"it continues":                       {upgrade: &upgrade.Upgrade{}, record: record, want: true},
		"it is done":                         {upgrade: &upgrade.Upgrade{Done: true}, record: record},
		"the removal has begun":              {upgrade: &upgrade.Upgrade{}, record: going},
		"the add-on is there at other times": {upgrade: &upgrade.Upgrade{}, record: record, absent: true},
	} {
		q := &clusterRun{proofs: &releases.Proofs{}, upgrade: tc.upgrade, absent: map[string]bool{"platform/web": tc.absent}}
		if got := q.gate().holdsRemoval(tc.record); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Nothing is compared by a record that isn't proven, and it isn't tried again and again.
func TestUnprovenRecordIsNotCompared(t *testing.T) {
	for _, isProven := range []bool{true, false} {
		record := addons.Installed("platform", "web")
		record.Owned = true
		q, asked := askedCluster(t, record)
		q.watched, q.again = fleetwatch.NewObjects(nil), true
		if !isProven {
			q.proofs = &releases.Proofs{}
		}
		a := addons.Wanted("platform", "web")
		a.Namespace = "apps"
		one := addonResult{status: releases.Status(record, addonsv1.AddonReady)}
		q.repairs(&a).correct(t.Context(), record, &one)
		if (*asked > 0) != isProven || !isProven && one.retryAfter != 0 {
			t.Errorf("proven %t: asked %d times, again after %s", isProven, *asked, one.retryAfter)
		}
	}
}

// An add-on's objects are watched by what its own stack says of drift, once that stack has the release.
func TestFollowed(t *testing.T) {
	record := addons.Installed("platform", "web")
	for name, tc := range map[string]struct {
		stack  string
		change func(*wanted.Addon)
		want   bool
	}{
		"it is installed":         {"platform", func(*wanted.Addon) {}, true},
		"another stack's":         {"other", func(*wanted.Addon) {}, false},
		"the stack is outdated":   {"platform", func(a *wanted.Addon) { a.Outdated = true }, false},
		"its drift is of no note": {"platform", func(a *wanted.Addon) { a.Drift = &addonsv1.Drift{Policy: addonsv1.DriftPolicyIgnore} }, false},
	} {
		a := addons.Wanted(tc.stack, "web")
		a.Namespace = "apps"
		tc.change(&a)
		if _, followed := expectedObjects([]wanted.Addon{a}, addons.Records(record))[record.Release]; followed != tc.want {
			t.Errorf("%s: %t", name, followed)
		}
	}
}
