// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"
	"context"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// desired is the add-on as the deliverer takes it.
func (q *request) desired(in *inputs) deliver.Desired {
	a := in.addon
	_, ignore := a.driftOf()
	return deliver.Desired{
		Release:          a.release(),
		Owner:            ownerOf(q.ca),
		OwnerUID:         q.ca.UID,
		Artifact:         in.artifact,
		ArtifactVersion:  in.version,
		Stack:            a.stack,
		Spec:             specDigest(a),
		DependsOn:        a.DependsOn,
		Leaving:          q.leavingReleases(),
		CreateNamespace:  ptr.Deref(a.CreateNamespace, true),
		Adoption:         cmp.Or(a.AdoptionPolicy, addonsv1.AdoptionPolicyFail),
		AdoptRelease:     adoptedRelease(a),
		Ignore:           ignore,
		Seen:             q.seen(a),
		DeletionPolicy:   a.deletionPolicy,
		DataPolicy:       a.DataPolicy,
		ServiceAccount:   a.serviceAccount,
		OnFailure:        a.OnFailure,
		Again:            q.again,
		Recreate:         a.ImmutableFieldPolicy == addonsv1.ImmutableFieldPolicyRecreate,
		CRDPolicy:        a.CRDPolicy,
		HistoryLimit:     int(ptr.Deref(a.HistoryLimit, addonsv1.DefaultHistoryLimit)),
		ProgressDeadline: progressDeadline(a),
		Readiness:        a.Readiness,
		Postcondition:    q.postcondition(a),
		Postconditions:   postconditionsDigest(a),
		Sensitive:        in.secrets,
		WatchFilter:      q.ca.Labels[clusterv1.WatchLabel],
		Digest: func(ctx context.Context, factsUsed string) (string, error) {
			return q.digestNow(ctx, in, factsUsed)
		},
		Render: func(ctx context.Context, r deliver.RenderInput) (*deliver.Rendering, error) {
			return q.render(ctx, in, r)
		},
	}
}

// adoptedRelease is the release of another name, or with another place of its record, that the
// add-on takes over; zero if there is none.
func adoptedRelease(a *addon) deliver.Release {
	own, from := a.release(), a.AdoptRelease
	if from == nil {
		return deliver.Release{}
	}
	former := deliver.Release{Namespace: cmp.Or(from.StorageNamespace, own.Namespace), Name: cmp.Or(from.Name, own.Name)}
	if former == own {
		return deliver.Release{}
	}
	return former
}

func progressDeadline(a *addon) time.Duration {
	return time.Duration(ptr.Deref(a.ProgressDeadlineSeconds, addonsv1.DefaultProgressDeadlineSeconds)) * time.Second
}

// termsOf an add-on are those of its record, with the stack, the deletion policy and
// the dependencies as they are now: there they are read when the stack is gone.
//
// One that comes from another place now, and is the same, gets that place, too: so
// nobody has to ask there to see that nothing is to be done.
func termsOf(a *addon, record deliver.Summary, in *inputs, settled bool) deliver.Terms {
	terms := record.Terms()
	terms.Stack, terms.DeletionPolicy, terms.DependsOn = a.stack, a.deletionPolicy, a.DependsOn
	terms.DataPolicy, terms.ServiceAccount = a.DataPolicy, a.serviceAccount
	if settled && terms.ArtifactVersion != in.version && terms.Spec != specDigest(a) {
		terms.Spec, terms.ArtifactVersion = specDigest(a), in.version
	}
	return terms
}

// setTerms brings changed terms into the record.
func (q *request) setTerms(ctx context.Context, a *addon, record deliver.Summary, terms deliver.Terms) followUp {
	if !record.Complete || record.Terms().Equal(terms) {
		return followUp{}
	}
	if err := q.Deliverer.SetTerms(ctx, q.workload.target(), a.release(), terms); err != nil {
		return requestFailed(err, a.status()).followUp
	}
	return followUp{}
}
