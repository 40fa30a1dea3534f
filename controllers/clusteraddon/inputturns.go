// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// inputTurns limit how many clusters of a stack with spec.rollout get inputs at once that no revision has.
//
// Key: the AddonStack, and the ClusterAddon.
// Bound: until the ClusterAddon is gone.
// Lost with it: which clusters wait, and each of them asks again. The statuses have those that began.
type inputTurns struct {
	mu     sync.Mutex
	stacks map[client.ObjectKey]*decide.InputTurns
}

// of returns the turns of an AddonStack, none at first. The lock is to be held.
func (m *inputTurns) of(key client.ObjectKey) *decide.InputTurns {
	if m.stacks == nil {
		m.stacks = map[client.ObjectKey]*decide.InputTurns{}
	}
	if m.stacks[key] == nil {
		m.stacks[key] = &decide.InputTurns{}
	}
	return m.stacks[key]
}

// waiting returns the ClusterAddons that wait for others of an AddonStack, of which other limits may hold now.
func (m *inputTurns) waiting(_ context.Context, written client.Object) (keys []client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range m.of(client.ObjectKeyFromObject(written)).Waiting() {
		keys = append(keys, client.ObjectKey{Namespace: written.GetNamespace(), Name: name})
	}
	return keys
}

// settleInputs notes what a look at a cluster showed of each stack, writes into the status since when it gets other inputs,
// and starts those that may be next. Nothing is done on a cluster that is blocked: it has no turn, unless it failed. Nor has
// one that is at another revision: that is a rollout's.
func (r *Reconciler) settleInputs(before, ca *addonsv1.ClusterAddon, blocked bool) {
	m := &r.inputTurns
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, was := range before.Status.Stacks {
		key := client.ObjectKey{Namespace: ca.Namespace, Name: was.Name}
		if m.stacks[key] == nil && was.InputsChanged.IsZero() {
			continue
		}
		is, state := stackStatus(&ca.Status, was.Name), stateOf(was.Name, ca.Status.Addons)
		if is.Revision != was.Revision || blocked && state != addonsv1.StackFailed && state != addonsv1.StackDegraded {
			state = ""
		}
		m.of(key).Know(ca.Name, was)
		since, look := m.of(key).Settle(ca.Name, state)
		is.InputsChanged = timeOf(since)
		r.lookAt(ca.Namespace, look)
	}
}

// forgetInputs drops a ClusterAddon that is gone.
func (r *Reconciler) forgetInputs(gone client.ObjectKey) {
	m := &r.inputTurns
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, turns := range m.stacks {
		if key.Namespace == gone.Namespace {
			r.lookAt(gone.Namespace, turns.Forget(gone.Name))
		}
	}
}

func (r *Reconciler) lookAt(namespace string, names []string) {
	for _, name := range names {
		r.Queue.Add(client.ObjectKey{Namespace: namespace, Name: name})
	}
}

// stackStatus returns what a status says of a stack, nothing if it isn't there.
func stackStatus(status *addonsv1.ClusterAddonStatus, name string) *addonsv1.StackStatus {
	if at := slices.IndexFunc(status.Stacks, func(s addonsv1.StackStatus) bool { return s.Name == name }); at >= 0 {
		return &status.Stacks[at]
	}
	return &addonsv1.StackStatus{}
}

// changesInputsAlone reports whether an add-on of a stack with spec.rollout differs from its record by inputs alone that no
// revision has. So the cluster had the revision before, and the add-on's spec, pinned values and artifact are the same.
// Changes by facts about the cluster alone, or that an upgrade of Kubernetes waits for, are none.
func (q delivery) changesInputsAlone(t *turn) bool {
	a, record, is := t.addon, t.record, stackStatus(&q.stored.Status, t.addon.stack)
	isDeployed := record.Status == deliver.StatusDeployed && !record.IsRollback()
	if a.rollout == nil || !q.isProven(record) || !isDeployed && is.InputsChanged.IsZero() || q.upgrade != nil && !q.upgrade.Done && a.hasSay() ||
		is.Revision != stack.AssignedRevision(q.ca.Spec.Stacks, a.stack) ||
		record.Spec != specDigest(a) || !record.HasInputs(inputsDigest(a)) || record.Transferred() || record.Artifact != t.in.artifact {
		return false
	}
	var asked job.FactsUsed
	_ = json.Unmarshal([]byte(record.FactsUsed), &asked) // they were compared before
	return t.in.digest(asked) != record.Digest
}

// awaitTurn returns what an add-on waits for before it gets other inputs; nil if the cluster's turn is now.
func (q delivery) awaitTurn(ctx context.Context, a *addon) (*unmetCondition, error) {
	all := &addonsv1.ClusterAddonList{}
	if err := q.Client.List(ctx, all, client.InNamespace(q.ca.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	q.inputTurns.mu.Lock()
	defer q.inputTurns.mu.Unlock()
	turns, clusters := q.inputTurns.of(q.keyOf(a.stack)), 0
	for i := range all.Items {
		if ca := &all.Items[i]; stack.Assigned(ca.Spec.Stacks, a.stack).Name != "" {
			turns.Know(ca.Name, *stackStatus(&ca.Status, a.stack))
			clusters++
		}
	}
	strategy, _ := rollout.StrategyOf(a.rollout, nil) // the AddonStack says what is wrong of it
	turns.Within, turns.MaxFailed, turns.Concurrent = strategy.ReadyWithin, rollout.AtMost(strategy.MaxFailed, clusters), clusters
	for _, wave := range strategy.Waves {
		limit, _ := intstr.GetScaledValueFromIntOrPercent(&wave.MaxConcurrent, clusters, true)
		turns.Concurrent = max(1, min(turns.Concurrent, limit))
	}
	if turns.Ask(q.ca.Name, stackStatus(&q.stored.Status, a.stack).State, q.now, q.again) {
		return nil, nil
	}
	text := fmt.Sprintf("It gets its other labels, templates or values after other clusters of AddonStack %s: spec.rollout.maxConcurrent of these are on their way", a.stack)
	if failed := turns.Failed(q.now); len(failed) > turns.MaxFailed {
		text = fmt.Sprintf("Clusters failed with the labels, templates or values that they got: %s. Set these right, raise spec.rollout.maxFailed of AddonStack %s, "+
			"or annotate ClusterAddon %s with %s to go on here", message.List(failed, ", ", named), a.stack, q.ca.Name, addonsv1.ReconcileNowAnnotation)
	}
	return &unmetCondition{reason: reasons.WaitingForOtherClusters, message: text, retryAfter: turns.Within}, nil
}
