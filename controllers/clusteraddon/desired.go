// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// desired returns the add-on as the deliverer takes it.
func (q delivery) desired(in *inputs) deliver.Desired {
	a := in.addon
	_, ignore := a.driftOf()
	return deliver.Desired{
		Release:  a.release(),
		Owner:    ownerOf(q.ca),
		OwnerUID: q.ca.UID,
		Proof:    q.proofs[a.release()],
		Artifact: in.artifact,
		Terms: a.stated(deliver.Terms{
			Spec: specDigest(a), ArtifactVersion: in.version, Postconditions: postconditionsDigest(a), Optional: in.optional, Inputs: inputsDigest(a),
		}),
		StackRevision:    stack.AssignedRevision(q.ca.Spec.Stacks, a.stack),
		Recorded:         in.recorded,
		Leaving:          q.leavingReleases(),
		Kept:             q.keptReleases(a.release().Namespace),
		CreateNamespace:  ptr.Deref(a.CreateNamespace, true),
		Adoption:         cmp.Or(a.AdoptionPolicy, addonsv1.AdoptionPolicyFail),
		AdoptRelease:     adoptedRelease(a),
		Ignore:           ignore,
		Seen:             driftRepair(q).seen(a),
		OnFailure:        a.OnFailure,
		Again:            q.again,
		Recreate:         a.ImmutableFieldPolicy == addonsv1.ImmutableFieldPolicyRecreate,
		PruneEarly:       a.PrunePolicy == addonsv1.PrunePolicyBeforeReady,
		CRDPolicy:        a.CRDPolicy,
		HistoryLimit:     int(ptr.Deref(a.HistoryLimit, addonsv1.DefaultHistoryLimit)),
		ProgressDeadline: progressDeadline(a),
		Readiness:        a.Readiness,
		Postcondition:    conditionCheck(q).postcondition(a),
		Sensitive:        in.secrets,
		WatchFilter:      q.ca.Labels[clusterv1.WatchLabel],
		Digest: func(ctx context.Context, factsUsed string) (string, error) {
			return rendering(q).digestNow(ctx, in, factsUsed)
		},
		Render: func(ctx context.Context, r deliver.RenderInput) (*deliver.Rendering, error) {
			return rendering(q).render(ctx, in, r)
		},
	}
}

// setTerms brings changed terms into a record. A record that isn't proven gets the terms once it
// is.
func (q *clusterRun) setTerms(ctx context.Context, record deliver.Summary, terms deliver.Terms) error {
	if !q.isProven(record) || equality.Semantic.DeepEqual(record.Terms, terms) {
		return nil
	}
	proof, err := q.Deliverer.SetTerms(ctx, q.target(), record.Release, q.ca.UID, q.proofs[record.Release], terms)
	if err == nil {
		q.proofs[record.Release] = proof
	}
	return err
}

// stated returns terms with what the spec says of them.
func (a *addon) stated(terms deliver.Terms) deliver.Terms {
	terms.Stack, terms.DependsOn, terms.ServiceAccount = a.stack, a.DependsOn, a.spec.ServiceAccountName
	terms.DeletionPolicy, terms.DataPolicy = cmp.Or(a.spec.DeletionPolicy, addonsv1.DeletionPolicyDelete), a.DataPolicy
	return terms
}

// termsOf returns the terms of an add-on's record with what the spec says now. They are read from
// there once the stack is gone. An add-on that is the same, and comes from another place now, gets
// that place, so that nobody has to ask there to see that nothing is to be done.
func termsOf(a *addon, record deliver.Summary, in *inputs, settled bool) deliver.Terms {
	terms := a.stated(record.Terms)
	if settled {
		terms.Optional = in.optional
	}
	if pinned := inputsDigest(a); settled && pinned != "" {
		terms.Spec, terms.Inputs = specDigest(a), withInputs(terms.Inputs, pinned)
	}
	if settled && terms.ArtifactVersion != in.version && terms.Spec != specDigest(a) {
		terms.Spec, terms.ArtifactVersion = specDigest(a), in.version
	}
	return terms
}

// tellOrphans writes into the records of stacks which leave their add-ons behind that they do. A removal reads it
// there, and the stack may be gone already, with its revision. So this comes first, and the assignment waits for it.
func (q removal) tellOrphans(ctx context.Context) error {
	var failed []error
	for release, record := range q.installed {
		if !q.isToldOrphan(record) || q.paused.Has(record.Stack) {
			continue
		}
		terms := record.Terms
		terms.DeletionPolicy = addonsv1.DeletionPolicyOrphan
		if err := q.setTerms(ctx, record, terms); err != nil {
			failed = append(failed, fmt.Errorf("writing the deletion policy of add-on %s: %w", record.Name, err))
			continue
		}
		record.Terms = terms
		q.installed[release] = record
	}
	return errors.Join(failed...)
}

// isToldOrphan reports whether the record is to say, or says, that the add-on is left behind.
func (q removal) isToldOrphan(record deliver.Summary) bool {
	policy := stack.Assigned(q.ca.Spec.Stacks, record.Stack).DeletionPolicy
	return policy == addonsv1.DeletionPolicyOrphan && !isRemoving(record) && q.isProven(record)
}

// isOrphanRecorded reports whether each record of a stack says that its add-on is left behind: those that are seen, and
// those that the status has.
func (q removal) isOrphanRecorded(name string) bool {
	for _, record := range q.installed {
		if record.Stack == name && q.isToldOrphan(record) && record.DeletionPolicy != addonsv1.DeletionPolicyOrphan {
			return false
		}
	}
	return stack.Assigned(q.ca.Spec.Stacks, name).DeletionPolicy == addonsv1.DeletionPolicyOrphan &&
		!slices.ContainsFunc(q.ca.Status.Addons, func(a addonsv1.AddonStatus) bool {
			_, isSeen := q.installed[deliver.Release{Namespace: a.Namespace, Name: a.Name}]
			return a.Stack == name && a.Revision > 0 && !isSeen
		})
}

// noteOrphans writes into the status which stacks leave their add-ons behind. It reports whether one doesn't any more: that
// is told before a record says another policy.
func (q removal) noteOrphans() (ends bool) {
	for i := range q.ca.Status.Stacks {
		is := &q.ca.Status.Stacks[i]
		was := is.RecordedDeletionPolicy
		if is.RecordedDeletionPolicy = ""; q.isOrphanRecorded(is.Name) {
			is.RecordedDeletionPolicy = addonsv1.DeletionPolicyOrphan
		}
		ends = ends || was != "" && is.RecordedDeletionPolicy == ""
	}
	return ends
}
