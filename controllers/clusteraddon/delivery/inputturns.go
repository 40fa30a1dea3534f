// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/checks"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// ChangesInputsAlone reports whether an add-on of a stack with spec.rollout differs from its record by inputs alone that no
// revision has. So the cluster had the revision before, and the add-on's spec, pinned values and artifact are the same.
// Changes by facts about the cluster alone, or that an upgrade of Kubernetes waits for, are none.
func ChangesInputsAlone(o *gather.Observed, proofs *releases.Proofs, in *inputs.Inputs, record deliver.Summary) bool {
	a, is := in.Addon, stack.StatusOf(&o.ClusterAddon.Status, in.Stack)
	isDeployed := record.Status == deliver.StatusDeployed && !record.IsRollback()
	if a.Rollout == nil || !proofs.Prove(record) || !isDeployed && is.InputsChanged.IsZero() || o.Upgrade != nil && !o.Upgrade.Done && a.HasSay() ||
		is.Revision != stack.AssignedRevision(o.ClusterAddon.Spec.Stacks, a.Stack) ||
		record.Spec != a.SpecDigest() || !record.HasInputs(a.InputsDigest()) || record.Transferred() || record.Artifact != in.Artifact {
		return false
	}
	return in.DigestBy(record.FactsUsed) != record.Digest
}

// Await returns what an add-on of a cluster waits for before it gets other inputs; nil if the cluster's turn is now.
func (m *InputTurns) Await(ctx context.Context, others client.Reader, o *gather.Observed, a *wanted.Addon) (*checks.Unmet, error) {
	all := &addonsv1.ClusterAddonList{}
	if err := others.List(ctx, all, client.InNamespace(o.ClusterAddon.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	turns, clusters := m.of(client.ObjectKey{Namespace: o.ClusterAddon.Namespace, Name: a.Stack}), 0
	for i := range all.Items {
		if ca := &all.Items[i]; stack.IsAssigned(ca.Spec.Stacks, a.Stack) {
			turns.Know(ca.Name, *stack.StatusOf(&ca.Status, a.Stack))
			clusters++
		}
	}
	strategy, _ := rollout.StrategyOf(a.Rollout, nil) // the AddonStack says what is wrong of it
	turns.Within, turns.MaxFailed, turns.Concurrent = strategy.ReadyWithin, rollout.AtMost(strategy.MaxFailed, clusters), clusters
	for _, wave := range strategy.Waves {
		limit, _ := intstr.GetScaledValueFromIntOrPercent(&wave.MaxConcurrent, clusters, true)
		turns.Concurrent = max(1, min(turns.Concurrent, limit))
	}
	if turns.Ask(o.ClusterAddon.Name, stack.StatusOf(&o.ClusterAddon.Status, a.Stack).State, o.Now, o.Again) {
		return nil, nil
	}
	text := fmt.Sprintf("It gets its other labels, templates or values after other clusters of AddonStack %s: spec.rollout.maxConcurrent of these are on their way", a.Stack)
	if failed := turns.Failed(o.Now); len(failed) > turns.MaxFailed {
		text = fmt.Sprintf("Clusters failed with the labels, templates or values that they got: %s. Set these right, raise spec.rollout.maxFailed of AddonStack %s, "+
			"or annotate ClusterAddon %s with %s to go on here", message.List(failed, ", ", message.Few), a.Stack, o.ClusterAddon.Name, addonsv1.ReconcileNowAnnotation)
	}
	return &checks.Unmet{Reason: reasons.WaitingForOtherClusters, Message: text, RetryAfter: turns.Within}, nil
}
