// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// inputTurns limit how many clusters of a stack with spec.rollout get inputs at once that no revision has.
//
// Key: the AddonStack.
// Bound: its clusters that get such inputs, or wait for that.
// Lost with it: the order of those that wait. The statuses of ClusterAddons have the others.
type inputTurns struct {
	mu       sync.Mutex
	restored bool
	stacks   map[client.ObjectKey]*decide.InputTurns
}

// restore notes, once, the clusters that began in an earlier process.
func (m *inputTurns) restore(ctx context.Context, c client.Reader) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.restored {
		return nil
	}
	all := &addonsv1.ClusterAddonList{}
	if err := c.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ClusterAddons: %w", err)
	}
	m.restored, m.stacks = true, map[client.ObjectKey]*decide.InputTurns{}
	for i := range all.Items {
		ca := &all.Items[i]
		for _, s := range ca.Status.Stacks {
			if !s.InputsChanged.IsZero() && ca.Status.ObservedUID == ca.UID {
				m.of(client.ObjectKey{Namespace: ca.Namespace, Name: s.Name}).Restore(ca.Name, s.InputsChanged.Time, hasFailed(s.State))
			}
		}
	}
	return nil
}

func (m *inputTurns) of(key client.ObjectKey) *decide.InputTurns {
	if m.stacks[key] == nil {
		m.stacks[key] = &decide.InputTurns{Within: addonsv1.DefaultReadyWithin}
	}
	return m.stacks[key]
}

func hasFailed(state addonsv1.StackState) bool {
	return state == addonsv1.StackFailed || state == addonsv1.StackDegraded
}

// waiting returns the ClusterAddons that wait for their turn of an AddonStack, of which other limits may hold now.
func (m *inputTurns) waiting(_ context.Context, written client.Object) (keys []client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if turns := m.stacks[client.ObjectKeyFromObject(written)]; turns != nil {
		for _, name := range turns.Waiting() {
			keys = append(keys, client.ObjectKey{Namespace: written.GetNamespace(), Name: name})
		}
	}
	return keys
}

// settleInputs notes what a look at a cluster showed of each stack, writes into the status when it began with other inputs,
// and starts the clusters whose turn it is then.
func (r *Reconciler) settleInputs(ca *addonsv1.ClusterAddon, outcome func(stack string) decide.InputOutcome) {
	m := &r.inputTurns
	m.mu.Lock()
	defer m.mu.Unlock()
	began := map[string]time.Time{}
	for key, turns := range m.stacks {
		if key.Namespace != ca.Namespace {
			continue
		}
		began[key.Name] = turns.Settle(ca.Name, outcome(key.Name))
		for _, name := range turns.Next(r.Clock.Now()) {
			r.Queue.Add(client.ObjectKey{Namespace: key.Namespace, Name: name})
		}
		if turns.IsEmpty() {
			delete(m.stacks, key)
		}
	}
	for i := range ca.Status.Stacks {
		ca.Status.Stacks[i].InputsChanged = timeOf(began[ca.Status.Stacks[i].Name])
	}
}

// allAre returns an outcome for each stack.
func allAre(outcome decide.InputOutcome) func(string) decide.InputOutcome {
	return func(string) decide.InputOutcome { return outcome }
}

// inputOutcome returns what the reconcile showed of a stack. At another revision, the cluster is the rollout's.
func (q statusReport) inputOutcome(name string) decide.InputOutcome {
	switch is := stackStatus(&q.ca.Status, name); {
	case is.State == "", is.State == addonsv1.StackReady, is.Revision != stackStatus(&q.stored.Status, name).Revision:
		return decide.InputsEnded
	case hasFailed(is.State):
		return decide.InputsFailed
	}
	return decide.InputsGoOn
}

// stackStatus returns what a status says of a stack.
func stackStatus(status *addonsv1.ClusterAddonStatus, name string) addonsv1.StackStatus {
	if at := slices.IndexFunc(status.Stacks, func(s addonsv1.StackStatus) bool { return s.Name == name }); at >= 0 {
		return status.Stacks[at]
	}
	return addonsv1.StackStatus{}
}

// changesInputsAlone reports whether an add-on of a stack with spec.rollout differs from its record by inputs alone that no
// revision has: the cluster had the revision before, and the spec, the pinned values, the artifact and the facts about the
// cluster make no difference. Changes that an upgrade of Kubernetes waits for are none.
func (q delivery) changesInputsAlone(t *turn) bool {
	a, record, is := t.addon, t.record, stackStatus(&q.stored.Status, t.addon.stack)
	isDeployed := record.Status == deliver.StatusDeployed && !record.IsRollback()
	if a.rollout == nil || !q.isProven(record) || !isDeployed && is.InputsChanged.IsZero() || q.upgrade != nil && !q.upgrade.Done && a.hasSay() ||
		is.Revision != stack.AssignedRevision(q.ca.Spec.Stacks, a.stack) ||
		record.Spec != specDigest(a) || !record.HasInputs(inputsDigest(a)) || record.Transferred() || record.Artifact != t.in.artifact {
		return false
	}
	var asked job.FactsUsed
	_ = json.Unmarshal([]byte(record.FactsUsed), &asked) // compared already
	return t.in.digest(asked) != record.Digest
}

// askForTurn finds out whether the cluster may get other inputs now.
func (q delivery) askForTurn(ctx context.Context, t *turn) {
	all := &addonsv1.ClusterAddonList{}
	if t.err = q.Client.List(ctx, all, client.InNamespace(q.ca.Namespace), client.UnsafeDisableDeepCopy); t.err != nil {
		t.facts.Turn = decide.Failed
		return
	}
	clusters := 0
	for i := range all.Items {
		if stack.Assigned(all.Items[i].Spec.Stacks, t.addon.stack).Name != "" {
			clusters++
		}
	}
	strategy, _ := rollout.StrategyOf(t.addon.rollout, nil) // what is wrong of it is the AddonStack's to tell
	q.inputTurns.mu.Lock()
	defer q.inputTurns.mu.Unlock()
	turns := q.inputTurns.of(q.keyOf(t.addon.stack))
	turns.Within, turns.MaxFailed, turns.Concurrent = strategy.ReadyWithin, rollout.AtMost(strategy.MaxFailed, clusters), clusters
	for _, wave := range strategy.Waves {
		limit, _ := intstr.GetScaledValueFromIntOrPercent(&wave.MaxConcurrent, clusters, true)
		turns.Concurrent = max(1, min(turns.Concurrent, limit))
	}
	if t.facts.Turn = decide.True; turns.Ask(q.ca.Name, q.now, q.again) {
		return
	}
	t.facts.Turn, t.turnAfter = decide.False, until(turns.Until(q.now), q.now)
	t.holdMessage = fmt.Sprintf("It gets its other labels, templates or values after others of AddonStack %s: spec.rollout.maxConcurrent clusters get theirs now", t.addon.stack)
	if failed := turns.Failed(q.now); len(failed) > turns.MaxFailed {
		t.holdMessage = fmt.Sprintf("Other clusters failed with the labels, templates or values that they got: %s. Set these right, raise spec.rollout.maxFailed of AddonStack %s, "+
			"or annotate ClusterAddon %s with %s to go on here alone", message.List(failed, ", ", named), t.addon.stack, q.ca.Name, addonsv1.ReconcileNowAnnotation)
	}
}

// awaitTurn returns the result of an add-on whose other inputs wait for other clusters: it stays as it is. One that failed
// with such inputs is still failed.
func (q delivery) awaitTurn(t *turn, one addonResult) addonResult {
	is := stackStatus(&q.stored.Status, t.addon.stack)
	if one.status.Phase = addonsv1.AddonReady; !is.InputsChanged.IsZero() {
		one.status = q.previousStatus(t.status)
	}
	one.retryAfter = retry.Sooner(one.retryAfter, t.turnAfter)
	return one
}
