// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"
	"context"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// desired returns the add-on as the deliverer takes it.
func (q delivery) desired(in *inputs.Inputs) deliver.Desired {
	a := in.Addon
	_, ignore := a.DriftRules()
	return deliver.Desired{
		Release:  a.Release(),
		Owner:    ownerOf(q.ca),
		OwnerUID: q.ca.UID,
		Proof:    q.proofs.Of(a.Release()),
		Artifact: in.Artifact,
		Terms: a.Stated(deliver.Terms{
			Spec: a.SpecDigest(), ArtifactVersion: in.Version, Postconditions: a.PostconditionsDigest(), Optional: in.Optional, Inputs: a.InputsDigest(),
		}),
		StackRevision:    stack.AssignedRevision(q.ca.Spec.Stacks, a.Stack),
		Recorded:         in.Recorded,
		Leaving:          q.leavingReleases(),
		Kept:             q.keptReleases(a.Release().Namespace),
		CreateNamespace:  ptr.Deref(a.CreateNamespace, true),
		Adoption:         cmp.Or(a.AdoptionPolicy, addonsv1.AdoptionPolicyFail),
		AdoptRelease:     a.AdoptedRelease(),
		Ignore:           ignore,
		Seen:             q.repairs(a).seen(),
		OnFailure:        a.OnFailure,
		Again:            q.again,
		Recreate:         a.ImmutableFieldPolicy == addonsv1.ImmutableFieldPolicyRecreate,
		PruneEarly:       a.PrunePolicy == addonsv1.PrunePolicyBeforeReady,
		CRDPolicy:        a.CRDPolicy,
		HistoryLimit:     int(ptr.Deref(a.HistoryLimit, addonsv1.DefaultHistoryLimit)),
		ProgressDeadline: a.ProgressDeadline(),
		Readiness:        a.Readiness,
		Postcondition:    q.postcondition(a),
		Sensitive:        in.Secrets,
		WatchFilter:      q.ca.Labels[clusterv1.WatchLabel],
		Digest: func(ctx context.Context, factsUsed string) (string, error) {
			return q.renderer().DigestNow(ctx, in, factsUsed)
		},
		DigestBy: in.DigestBy,
		Render: func(ctx context.Context, r deliver.RenderInput) (*deliver.Rendering, error) {
			return q.renderer().Render(ctx, in, r)
		},
	}
}

// termsOf returns the terms of an add-on's record with what the spec says now. They are read from
// there once the stack is gone. An add-on that is the same, and comes from another place now, gets
// that place, so that nobody has to ask there to see that nothing is to be done.
func termsOf(a *wanted.Addon, record deliver.Summary, in *inputs.Inputs, settled bool) deliver.Terms {
	terms := a.Stated(record.Terms)
	if settled {
		terms.Optional = in.Optional
	}
	if pinned := a.InputsDigest(); settled && pinned != "" {
		terms.Spec, terms.Inputs = a.SpecDigest(), wanted.WithInputs(terms.Inputs, pinned)
	}
	if settled && terms.ArtifactVersion != in.Version && terms.Spec != a.SpecDigest() {
		terms.Spec, terms.ArtifactVersion = a.SpecDigest(), in.Version
	}
	return terms
}
