// SPDX-License-Identifier: Apache-2.0

package upgrade_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

func TestAnswer(t *testing.T) {
	now := time.Unix(100000, 0)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	gate := func(point addonsv1.UpgradePoint, version string, state addonsv1.GateState) addonsv1.UpgradeGate {
		return addonsv1.UpgradeGate{Point: point, Version: version, State: state, Message: "cni isn't ready", Since: ago(time.Second)}
	}
	seen := func(gates ...addonsv1.UpgradeGate) *addonsv1.ClusterUpgrade {
		return &addonsv1.ClusterUpgrade{From: "v1.34.0", Step: "v1.35.0", Target: "v1.36.0", Since: ago(time.Minute), ObservedClusterGeneration: 4, Gates: gates}
	}
	ask := func(point addonsv1.UpgradePoint, version string) upgrade.Question {
		return upgrade.Question{Point: point, Version: version, Target: "v1.36.0", Generation: 4}
	}
	waiting, open := gate(before, "v1.35.0", addonsv1.GateWaiting), gate(before, "v1.35.0", addonsv1.GateOpen)
	expired, long := waiting, waiting
	expired.Deadline, long.Since = ago(0), ago(3*time.Minute)
	silent := func(d time.Duration) *upgrade.LostInstance {
		return &upgrade.LostInstance{Instance: "team/chandler", Since: now.Add(-d)}
	}
	ungated, old, other, skipped := &addonsv1.ClusterAddon{}, seen(open), seen(open), ask(before, "")
	old.ObservedClusterGeneration, other.Target, skipped.SkipGates = 3, "v1.35.0", "v1.36.0"
	stale := seen()
	stale.Since = ago(2 * time.Hour)
	for name, tc := range map[string]struct {
		q       upgrade.Question
		ca      *addonsv1.ClusterAddon
		upgrade *addonsv1.ClusterUpgrade
		lost    *upgrade.LostInstance
		want    time.Duration
	}{
		"no add-on has a say":             {q: ask(before, ""), ca: ungated},
		"open":                            {q: ask(before, ""), upgrade: seen(open)},
		"open for this step":              {q: ask(before, "v1.35.4"), upgrade: seen(open)},
		"open for another step":           {q: ask(before, "v1.36.0"), upgrade: seen(open), want: 2 * time.Second},
		"waiting":                         {q: ask(before, ""), upgrade: seen(waiting), want: 2 * time.Second},
		"waiting for long":                {q: ask(before, ""), upgrade: seen(long), want: 2 * time.Second},
		"the deadline has come":           {q: ask(before, ""), upgrade: seen(expired)},
		"closed":                          {q: ask(before, ""), upgrade: seen(gate(before, "v1.35.0", addonsv1.GateClosed)), want: 2 * time.Second},
		"skipped":                         {q: skipped, upgrade: seen(waiting)},
		"not seen yet":                    {q: ask(before, ""), want: 2 * time.Second},
		"not since it was changed":        {q: ask(before, ""), upgrade: old, want: 2 * time.Second},
		"another target":                  {q: ask(before, ""), upgrade: other, want: 2 * time.Second},
		"no gate":                         {q: ask(before, ""), upgrade: seen(), want: 2 * time.Second},
		"no gate for very long":           {q: ask(before, ""), upgrade: stale},
		"after it, all was done":          {q: ask(workers, "v1.36.0")},
		"after a step that wasn't seen":   {q: ask(after, "v1.34.0"), upgrade: seen(open)},
		"after a step, not seen yet":      {q: ask(after, "v1.35.0"), upgrade: seen(open), want: 2 * time.Second},
		"after a step":                    {q: ask(after, "v1.35.0"), upgrade: seen(open, gate(after, "v1.35.0", addonsv1.GateWaiting)), want: 2 * time.Second},
		"after the workers, not seen yet": {q: ask(workers, "v1.36.0"), upgrade: seen(), want: 2 * time.Second},
		"silent":                          {q: ask(before, ""), lost: silent(time.Minute), want: 2 * time.Second},
		"silent for long":                 {q: ask(before, ""), lost: silent(time.Hour)},
		"silent, and waiting":             {q: ask(before, ""), upgrade: seen(waiting), lost: silent(time.Minute), want: 2 * time.Second},
		"silent for long, and waiting":    {q: ask(before, ""), upgrade: seen(expired), lost: silent(time.Hour)},
		"silent for long, for ever":       {q: ask(before, ""), upgrade: seen(waiting), lost: silent(time.Hour), want: 2 * time.Second},
		"silent for long, and closed":     {q: ask(before, ""), upgrade: seen(gate(before, "v1.35.0", addonsv1.GateClosed)), lost: silent(time.Hour), want: 2 * time.Second},
		"silent, and open":                {q: ask(before, ""), upgrade: seen(open), lost: silent(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			ca := tc.ca
			if ca == nil {
				ca = &addonsv1.ClusterAddon{}
				ca.Name, ca.Status.GatesUpgrades, ca.Status.Upgrade = "c", ptr.To(true), tc.upgrade
			}
			got := upgrade.AnswerOf(tc.q, ca, tc.lost, now)
			if got.RetryAfter != tc.want || (tc.want > 0) != (got.Message != "") {
				t.Errorf("%+v", got)
			}
			for range 100 {
				if again := upgrade.AnswerOf(tc.q, ca.DeepCopy(), tc.lost, now); again != got {
					t.Fatalf("first %+v, then %+v", got, again)
				}
			}
		})
	}
}

func TestDeletionAnswer(t *testing.T) {
	now := time.Unix(100000, 0)
	deletion := func(state addonsv1.GateState, deadline time.Duration) *addonsv1.ClusterDeletion {
		d := &addonsv1.ClusterDeletion{State: state, Message: "csi", Since: metav1.NewTime(now.Add(-time.Second))}
		if deadline != 0 {
			d.Deadline = metav1.NewTime(now.Add(deadline))
		}
		return d
	}
	silent := func(d time.Duration) *upgrade.LostInstance {
		return &upgrade.LostInstance{Instance: "team/chandler", Since: now.Add(-d)}
	}
	for name, tc := range map[string]struct {
		says     bool
		deletion *addonsv1.ClusterDeletion
		lost     *upgrade.LostInstance
		waits    bool
	}{
		"nothing is to be removed": {},
		"not seen yet":             {says: true, waits: true},
		"waiting":                  {says: true, deletion: deletion(addonsv1.GateWaiting, time.Minute), waits: true},
		"waiting for ever":         {says: true, deletion: deletion(addonsv1.GateWaiting, 0), lost: silent(100 * time.Hour), waits: true},
		"the deadline has come":    {says: true, deletion: deletion(addonsv1.GateWaiting, -time.Second)},
		"removed":                  {says: true, deletion: deletion(addonsv1.GateOpen, 0)},
		"expired":                  {says: true, deletion: deletion(addonsv1.GateExpired, 0)},
		"silent":                   {says: true, lost: silent(time.Minute), waits: true},
		"silent for long":          {says: true, lost: silent(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			ca := &addonsv1.ClusterAddon{}
			ca.Status.Deletion = tc.deletion
			if tc.says {
				ca.Status.GatesDeletion = ptr.To(true)
			}
			got := upgrade.DeletionAnswerOf(ca, tc.lost, now)
			if (got.RetryAfter > 0) != tc.waits || (got.Message != "") != tc.waits {
				t.Errorf("%+v", got)
			}
		})
	}
}
