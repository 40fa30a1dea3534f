// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// change installs or upgrades an add-on.
func (q delivery) change(ctx context.Context, t *turn) addonResult {
	a, record, status, installed := t.addon, t.record, t.status, t.facts.Installed
	target, err := q.targetAs(a.spec.ServiceAccountName)
	if err != nil {
		return requestFailed(err, q.previousStatus(status))
	}
	outcome, err := q.Deliverer.Ensure(ctx, target, q.desired(t.in))
	action := actionUpgrade
	if !installed {
		action = actionInstall
	}
	countDelivery(action, outcome, err)
	q.proofs[a.release()] = outcome.Proof
	q.memory.of(a.release()).time(outcome.Phase, q.now, q.Clock.Now())
	if outcome.Recorded && !installed {
		q.memory.installs.Next(a.release().String(), q.now)
	}
	if err != nil {
		return upgradeFailed(err, q.previousStatus(status))
	}
	if outcome.Phase == addonsv1.AddonReady && rendering(q).mayBringKinds(a, record.Kinds, outcome.Kinds) {
		q.workload.conn.InvalidateFacts() // other charts may ask about them
	}
	one := delivered(outcome, status)
	if pause := q.memory.installs.Get(a.release().String()); !installed && pause > retry.Install.First && one.status.Phase == addonsv1.AddonReady {
		return recordLost(a, one.status, pause) // until the watch shows the record
	}
	if !installed { // a cluster that never shows the record would have an add-on that is Ready for ever
		one.retryAfter = retry.Sooner(one.retryAfter, retry.Record)
	}
	return q.keepReady(ctx, a, record, one)
}

// recordLost returns the result of an add-on whose records don't stay, and that is installed again after the pause.
func recordLost(a *addon, status addonsv1.AddonStatus, pause time.Duration) addonResult {
	one := because(status, reasons.RecordLost, fmt.Sprintf("Its release record in namespace %s of the cluster is gone after each installation; "+
		"see what deletes Secrets with the label owner=helm there. It is installed again after a while", a.release().Namespace))
	one.retryAfter = pause
	return one
}

// goBack delivers an earlier record of an add-on whose values were replaced, if one has the values of the revision.
func (q delivery) goBack(ctx context.Context, t *turn) addonResult {
	one := q.change(ctx, t)
	if one.status.Reason == deliver.ReasonInputReplaced {
		one.status.Message = shorten(t.err.Error() + ". No release record has the previous ones: put them back, or change the AddonStack")
	}
	return one
}
