// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
)

const (
	waiting  = addonsv1.ScopeWaiting
	claiming = addonsv1.ScopeClaiming
	active   = addonsv1.ScopeActive
)

// pi is a ProviderInstance of namespace team-a.
func pi(name string, claim addonsv1.ScopeClaim, edits ...func(*addonsv1.ProviderInstance)) *addonsv1.ProviderInstance {
	pi := &addonsv1.ProviderInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Generation: 1},
		Spec: addonsv1.ProviderInstanceSpec{
			Namespaces: []string{"team-a"}, Version: "v1.2.3", APIVersions: []string{"v1beta1"}, Holder: "pod-1", Claim: claim, ExpirySeconds: 40,
		},
	}
	for _, edit := range edits {
		edit(pi)
	}
	return pi
}

func holder(name string) func(*addonsv1.ProviderInstance) {
	return func(pi *addonsv1.ProviderInstance) { pi.Spec.Holder = name }
}

func lease(name string) func(*addonsv1.ProviderInstance) {
	return func(pi *addonsv1.ProviderInstance) { pi.Spec.LeaseName = name }
}

func scope(filter string, namespaces ...string) func(*addonsv1.ProviderInstance) {
	return func(pi *addonsv1.ProviderInstance) { pi.Spec.Namespaces, pi.Spec.WatchFilter = namespaces, filter }
}

func expires(seconds int32) func(*addonsv1.ProviderInstance) {
	return func(pi *addonsv1.ProviderInstance) { pi.Spec.ExpirySeconds = seconds }
}

func version(v string) func(*addonsv1.ProviderInstance) {
	return func(pi *addonsv1.ProviderInstance) { pi.Spec.Version = v }
}

func labelled(pi *addonsv1.ProviderInstance) { pi.Labels = map[string]string{"edited": "yes"} }

func deleting(pi *addonsv1.ProviderInstance) {
	now := metav1.Now()
	pi.DeletionTimestamp = &now
}

func alive(pi *addonsv1.ProviderInstance) Known { return Known{Instance: pi, Remaining: time.Second} }

func expired(pi *addonsv1.ProviderInstance) Known { return Known{Instance: pi} }

func deleted(pi *addonsv1.ProviderInstance) Known {
	return Known{Instance: pi, Remaining: time.Second, Deleted: true}
}

// Every step from one claim to another, by the same process, another leader of
// the same lease, and a stranger, while the previous holder is alive and after.
func TestTransitions(t *testing.T) {
	const yes, no, wrongName = metav1.CauseType(""), instance.ClaimOutOfOrder, instance.NameTaken
	claims := []addonsv1.ScopeClaim{waiting, claiming, active}
	kinds := []struct {
		name  string
		lives bool
		edits []func(*addonsv1.ProviderInstance)
		// for each claim before, and each claim after
		want [3][3]metav1.CauseType
	}{
		{"the same process", true, nil, [3][3]metav1.CauseType{
			{yes, yes, no}, {yes, yes, yes}, {yes, yes, yes},
		}},
		{"the same process with another version", true, []func(*addonsv1.ProviderInstance){version("v2")}, [3][3]metav1.CauseType{
			{yes, yes, no}, {yes, yes, yes}, {yes, yes, yes},
		}},
		{"the same process with another scope", true, []func(*addonsv1.ProviderInstance){scope("blue", "team-a")}, [3][3]metav1.CauseType{
			{yes, yes, no}, {yes, yes, no}, {yes, yes, no},
		}},
		{"the same process with namespaces in another order", true, []func(*addonsv1.ProviderInstance){scope("", "team-a", "team-a")}, [3][3]metav1.CauseType{
			{yes, yes, no}, {yes, yes, yes}, {yes, yes, yes},
		}},
		{"the same process with another lease", true, []func(*addonsv1.ProviderInstance){lease("other")}, [3][3]metav1.CauseType{
			{yes, yes, no}, {yes, yes, no}, {yes, yes, no},
		}},
		{"the same process with another expiry", true, []func(*addonsv1.ProviderInstance){expires(4)}, [3][3]metav1.CauseType{
			{yes, yes, no}, {yes, yes, no}, {yes, yes, no},
		}},
		{"the next leader", true, []func(*addonsv1.ProviderInstance){holder("pod-2")}, [3][3]metav1.CauseType{
			{yes, yes, no}, {yes, yes, no}, {yes, yes, no},
		}},
		{"a stranger beside it", true, []func(*addonsv1.ProviderInstance){holder("pod-2"), lease("other")}, [3][3]metav1.CauseType{
			{wrongName, wrongName, wrongName}, {wrongName, wrongName, wrongName}, {wrongName, wrongName, wrongName},
		}},
		{"a stranger without a lease beside it", true, []func(*addonsv1.ProviderInstance){holder("pod-2"), lease("")}, [3][3]metav1.CauseType{
			{wrongName, wrongName, wrongName}, {wrongName, wrongName, wrongName}, {wrongName, wrongName, wrongName},
		}},
		{"a stranger after it", false, []func(*addonsv1.ProviderInstance){holder("pod-2"), lease("other")}, [3][3]metav1.CauseType{
			{yes, yes, no}, {yes, yes, no}, {yes, yes, no},
		}},
	}
	for _, kind := range kinds {
		for i, from := range claims {
			for j, to := range claims {
				before := pi("x", from, lease("lease"))
				after := pi("x", to, append([]func(*addonsv1.ProviderInstance){lease("lease")}, kind.edits...)...)
				known := []Known{expired(before)}
				if kind.lives {
					known = []Known{alive(before)}
				}
				var got metav1.CauseType
				if refusal := judge(before, after, known); refusal != nil {
					got = refusal.Cause
				}
				if want := kind.want[i][j]; got != want {
					t.Errorf("%s, %s to %s: %q; want %q", kind.name, from, to, got, want)
				}
			}
		}
	}
}

// Two processes without a lease are strangers, whatever their object says.
func TestNoLeaseIsNoCommonLease(t *testing.T) {
	before := pi("x", active)
	if refusal := judge(before, pi("x", claiming, holder("pod-2")), []Known{alive(before)}); refusal == nil || refusal.Cause != instance.NameTaken {
		t.Errorf("judge() = %+v; want %s", refusal, instance.NameTaken)
	}
}

func TestOtherInstances(t *testing.T) {
	other := func(claim addonsv1.ScopeClaim, edits ...func(*addonsv1.ProviderInstance)) *addonsv1.ProviderInstance {
		return pi("other", claim, append([]func(*addonsv1.ProviderInstance){holder("pod-9")}, edits...)...)
	}
	mine := pi("mine", waiting)
	cases := map[string]struct {
		before, after *addonsv1.ProviderInstance
		known         []Known
		refused       bool
	}{
		"a first instance":                      {nil, pi("mine", claiming), nil, false},
		"beside an active one":                  {nil, pi("mine", claiming), []Known{alive(other(active))}, true},
		"beside a claiming one":                 {nil, pi("mine", claiming), []Known{alive(other(claiming))}, true},
		"beside a waiting one":                  {nil, pi("mine", claiming), []Known{alive(other(waiting))}, false},
		"beside an expired one":                 {nil, pi("mine", claiming), []Known{expired(other(active))}, false},
		"beside one that is being deleted":      {nil, pi("mine", claiming), []Known{alive(other(active, deleting))}, true},
		"beside a deleted one":                  {nil, pi("mine", claiming), []Known{deleted(other(active))}, true},
		"beside a deleted waiting one":          {nil, pi("mine", claiming), []Known{deleted(other(waiting))}, false},
		"beside another filter":                 {nil, pi("mine", claiming, scope("green", "team-a")), []Known{alive(other(active, scope("blue", "team-a")))}, false},
		"beside other namespaces":               {nil, pi("mine", claiming), []Known{alive(other(active, scope("", "team-b", "team-c")))}, false},
		"beside one for all namespaces":         {nil, pi("mine", claiming), []Known{alive(other(active, scope("")))}, true},
		"waiting beside an active one":          {nil, pi("mine", waiting), []Known{alive(other(active))}, false},
		"its own object is there":               {nil, pi("mine", claiming), []Known{alive(pi("mine", active, holder("pod-2")))}, false},
		"its own deleted object":                {nil, pi("mine", claiming), []Known{deleted(pi("mine", active))}, false},
		"its predecessor's deleted object":      {nil, pi("mine", claiming, holder("pod-2")), []Known{deleted(pi("mine", active))}, true},
		"its own deleted object, of its lease":  {nil, pi("mine", claiming, lease("l"), holder("pod-2")), []Known{deleted(pi("mine", active, lease("l")))}, false},
		"to claiming":                           {mine, pi("mine", claiming), []Known{alive(mine), alive(other(active))}, true},
		"to active":                             {pi("mine", claiming), pi("mine", active), []Known{alive(mine), alive(other(claiming))}, true},
		"an active one in a newer version":      {pi("mine", active), pi("mine", active, version("v2")), []Known{alive(mine), alive(other(active))}, true},
		"an active one with another label":      {pi("mine", active), pi("mine", active, labelled), []Known{alive(mine), alive(other(active))}, false},
		"stepping back":                         {pi("mine", active), pi("mine", waiting), []Known{alive(mine), alive(other(active))}, false},
		"an end of the deletion":                {pi("mine", active, deleting), pi("mine", active, deleting, labelled), []Known{alive(mine), alive(other(active))}, false},
		"next leader beside one that overtook":  {pi("mine", active, lease("l")), pi("mine", claiming, lease("l"), holder("pod-2")), []Known{alive(mine), alive(other(active))}, true},
		"taking over a dead one's name, beside": {pi("mine", active), pi("mine", claiming, holder("pod-2")), []Known{expired(mine), alive(other(active))}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			refusal := judge(tc.before, tc.after, tc.known)
			if (refusal != nil) != tc.refused {
				t.Errorf("judge() = %+v; refused should be %v", refusal, tc.refused)
			}
			if refusal != nil && refusal.Cause != instance.ScopeTaken {
				t.Errorf("the cause is %s; want %s", refusal.Cause, instance.ScopeTaken)
			}
		})
	}
}

func TestClaimsOutOfOrder(t *testing.T) {
	for name, tc := range map[string]struct{ before, after *addonsv1.ProviderInstance }{
		"created active":                 {nil, pi("x", active)},
		"claimed while it is deleted":    {pi("x", waiting, deleting), pi("x", claiming, deleting)},
		"active while it is deleted":     {pi("x", claiming, deleting), pi("x", active, deleting)},
		"another filter while active":    {pi("x", active), pi("x", active, scope("blue", "team-a"))},
		"another namespace while active": {pi("x", active), pi("x", active, scope("", "team-a", "team-b"))},
	} {
		t.Run(name, func(t *testing.T) {
			if refusal := judge(tc.before, tc.after, nil); refusal == nil || refusal.Cause != instance.ClaimOutOfOrder || refusal.Field != "spec.claim" {
				t.Errorf("judge() = %+v; want %s", refusal, instance.ClaimOutOfOrder)
			}
		})
	}
}

// The refusal says all that a user needs: who, what, which version, and the
// ways out. It is the same each time, since it is the message of a condition.
func TestRefusalsNameTheHolder(t *testing.T) {
	rival := pi("rival", active, scope("blue", "team-a", "team-b"), version("v9"))
	rival.Namespace = "elsewhere"
	second := pi("second", claiming, scope("", "team-b"))
	after := pi("mine", claiming, scope("", "team-b", "team-c"))
	known := []Known{alive(second), alive(rival)}
	want := "ProviderInstance elsewhere/rival (objects with watch filter blue in namespaces team-a, team-b; version v9) holds objects with watch filter blue in namespace team-b, and 1 more overlap. " +
		"The scope is free when that instance ends, or 40s after its last heartbeat; or start this one with another --namespace or --watch-filter"
	if refusal := judge(nil, after, known); refusal == nil || refusal.Message != want {
		t.Errorf("judge() = %+v; want\n%s", refusal, want)
	}

	gone := judge(nil, after, []Known{deleted(rival)})
	if gone == nil || !strings.Contains(gone.Message, "deleted without its process; the scope is free 40s after its last heartbeat") {
		t.Errorf("judge() = %+v", gone)
	}

	name := judge(rival, pi("rival", waiting, holder("pod-2")), []Known{alive(rival)})
	for _, part := range []string{"pod-1", "v9", "40s", "--instance-name"} {
		if name == nil || !strings.Contains(name.Message, part) {
			t.Errorf("judge() = %+v; want %q in it", name, part)
		}
	}
}
