// SPDX-License-Identifier: Apache-2.0

package outcome_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// TestStopFor tells what the failure of an object means for a step that began to wait at some time, if it did.
func TestStopFor(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	key := record.ObjectKey{Kind: "ConfigMap", Name: "a"}
	rejected := &object.Failure{Kind: object.Rejected, Reason: object.ReasonForbidden}
	deferred := &object.Failure{Kind: object.Deferred, Reason: object.ReasonWaitingForWebhook}
	transient := object.Classify(apierrors.NewTooManyRequests("busy", 1), key, false)
	for name, tc := range map[string]struct {
		failure  *object.Failure
		instead  string
		waited   time.Duration
		kind     outcome.Kind
		reason   string
		isError  bool
		isBegun  bool
		wantTime bool
	}{
		"nothing":                      {},
		"rejected":                     {failure: rejected, kind: outcome.Retried, reason: object.ReasonForbidden},
		"rejected, of a prune":         {failure: rejected, instead: outcome.ReasonPruneFailed, kind: outcome.Retried, reason: outcome.ReasonPruneFailed},
		"may come":                     {failure: deferred, kind: outcome.Waiting, reason: object.ReasonWaitingForWebhook, isBegun: true, wantTime: true},
		"may come, a moment later":     {failure: deferred, waited: 59 * time.Second, kind: outcome.Waiting, reason: object.ReasonWaitingForWebhook, isBegun: true, wantTime: true},
		"didn't come in time":          {failure: deferred, waited: time.Minute, kind: outcome.Retried, reason: object.ReasonWaitingForWebhook, isBegun: true},
		"the cluster is busy":          {failure: transient, isError: true},
		"the cluster is busy, a while": {failure: transient, waited: time.Hour, isError: true, isBegun: true},
	} {
		var since time.Time
		if tc.waited > 0 {
			since = now.Add(-tc.waited)
		}
		p := outcome.Patience{Since: &since, Deadline: time.Minute, Clock: clocktesting.NewFakePassiveClock(now)}
		stop, err := p.StopFor(tc.failure, tc.instead)
		if stop.Kind != tc.kind || stop.Reason != tc.reason || (err != nil) != tc.isError || !since.IsZero() != tc.isBegun || (stop.After > 0) != tc.wantTime {
			t.Errorf("%s: %+v, %v, since %v", name, stop, err, since)
		}
		if tc.isError && !apierrors.IsTooManyRequests(err) {
			t.Errorf("%s: %v", name, err)
		}
		if p.End(); !since.IsZero() {
			t.Errorf("%s: still waits", name)
		}
	}
	if (outcome.Stop{}).Is() || !outcome.Wait("", "", 0).Is() || !outcome.Fail("", "", 0).Is() {
		t.Error("zero is done, and nothing else")
	}
}
