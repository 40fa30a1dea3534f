// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/rendering"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// causeOf returns why a revision of an add-on was recorded, for people. It asks the cache alone.
func (q Delivery) causeOf(ctx context.Context, t *turn, recorded *deliver.Summary) addonsv1.ChangeCause {
	a, was := t.addon, t.record
	assigned := stack.AssignedRevision(q.ClusterAddon.Spec.Stacks, a.Stack)
	is := decide.Changed{
		Installed: t.facts.Installed, IsRollback: recorded.IsRollback(), SameStack: was.StackRevision == assigned, SameSpec: was.Spec == a.SpecDigest(),
		SamePinned: was.HasInputs(a.InputsDigest()), SameArtifact: was.Artifact == recorded.Artifact,
		SameInputs: t.in.Recorded || t.in.DigestBy(was.FactsUsed) == was.Digest,
		Deployed:   was.Status == deliver.StatusDeployed && q.Proofs.Prove(was), IsRenewed: rendering.IsRenewalDue(was, q.Now),
	}
	if !is.SameStack {
		is.OfStack = rollout.ChangeOf(q.revision(ctx, was.StackRevision), q.revision(ctx, assigned))
	}
	return is.Cause()
}

// revision returns a stack's revision, an empty one if it isn't there.
func (q Delivery) revision(ctx context.Context, name string) *appsv1.ControllerRevision {
	is := &appsv1.ControllerRevision{}
	_ = q.Others.Get(ctx, client.ObjectKey{Namespace: q.ClusterAddon.Namespace, Name: name}, is) // it is empty then
	return is
}
