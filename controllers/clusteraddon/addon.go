// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// addon is one add-on that the cluster is to have.
type addon struct {
	addonsv1.Addon

	stack          string
	outdated       bool                   // the stack's revision is; see assignedStack.addons
	bundle         *addonsv1.BundleSource // of the stack, nil if it has none
	deletionPolicy addonsv1.DeletionPolicy
	stackDrift     *addonsv1.Drift
	// degradedAfterSeconds is the stack's.
	degradedAfterSeconds *int32
	// serviceAccount is the name of the one that the add-on is delivered as, "" for none.
	serviceAccount string
	// ranges are those of Kubernetes versions that the spec has.
	ranges []addonsv1.KubernetesRange
	// incompatible says why the add-on isn't for the cluster's Kubernetes, "" if it is.
	incompatible string
	// unfit says why it isn't for a version that an upgrade leads to, "" if it is.
	unfit string
	// lifecycle is that of the stack, nil if it has none.
	lifecycle *addonsv1.StackLifecycle
}

// release names the add-on's Helm release.
func (a *addon) release() deliver.Release {
	return deliver.Release{Namespace: cmp.Or(a.Namespace, addonsv1.DefaultAddonNamespace), Name: a.Name}
}

// status returns the status of an add-on of which nothing else is known.
func (a *addon) status() addonsv1.AddonStatus {
	return addonsv1.AddonStatus{Name: a.Name, Namespace: a.release().Namespace, Stack: a.stack, ServiceAccountName: a.serviceAccount}
}

// directory returns that of the kustomization or the manifests, "" for the artifact's root.
func (a *addon) directory() string {
	switch {
	case a.Kustomization != nil:
		return a.Kustomization.Directory
	case a.Manifests != nil:
		return a.Manifests.Directory
	}
	return ""
}

// claims decides which stack has each release: the one that installed it, or else the first in the
// list. An unresolved stack that keeps its releases may still want what it installed.
func claims(wanted []addon, installed map[deliver.Release]deliver.Summary, stacks map[string]unresolvedStack) map[deliver.Release]string {
	holder := map[deliver.Release]string{}
	for i := range wanted {
		release := wanted[i].release()
		_, taken := holder[release]
		record, ok := installed[release]
		switch {
		case ok && stacks[record.Stack].keepsReleases:
			holder[release] = record.Stack
		case !taken || ok && record.Stack == wanted[i].stack:
			holder[release] = wanted[i].stack
		}
	}
	return holder
}

// desired returns the add-on as the deliverer takes it.
func (q *request) desired(in *inputs) deliver.Desired {
	a := in.addon
	_, ignore := a.driftOf()
	return deliver.Desired{
		Release:  a.release(),
		Owner:    ownerOf(q.ca),
		OwnerUID: q.ca.UID,
		Proof:    q.proofOf(a.release()),
		Artifact: in.artifact,
		Terms: deliver.Terms{
			Stack: a.stack, Spec: specDigest(a), DependsOn: a.DependsOn, ArtifactVersion: in.version,
			DeletionPolicy: a.deletionPolicy, DataPolicy: a.DataPolicy, ServiceAccount: a.serviceAccount,
			Postconditions: postconditionsDigest(a), Optional: in.optional,
		},
		Leaving:          q.leavingReleases(),
		CreateNamespace:  ptr.Deref(a.CreateNamespace, true),
		Adoption:         cmp.Or(a.AdoptionPolicy, addonsv1.AdoptionPolicyFail),
		AdoptRelease:     adoptedRelease(a),
		Ignore:           ignore,
		Seen:             q.seen(a),
		OnFailure:        a.OnFailure,
		Again:            q.again,
		Recreate:         a.ImmutableFieldPolicy == addonsv1.ImmutableFieldPolicyRecreate,
		PruneEarly:       a.PrunePolicy == addonsv1.PrunePolicyBeforeReady,
		CRDPolicy:        a.CRDPolicy,
		HistoryLimit:     int(ptr.Deref(a.HistoryLimit, addonsv1.DefaultHistoryLimit)),
		ProgressDeadline: progressDeadline(a),
		Readiness:        a.Readiness,
		Postcondition:    q.postcondition(a),
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

// adoptedRelease returns the other release that the add-on takes over, zero if there is none.
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

// termsOf returns the terms of an add-on's record with what the spec says now. They are read from
// there once the stack is gone. An add-on that is the same, and comes from another place now, gets
// that place, so that nobody has to ask there to see that nothing is to be done.
func termsOf(a *addon, record deliver.Summary, in *inputs, settled bool) deliver.Terms {
	terms := record.Terms()
	terms.Stack, terms.DeletionPolicy, terms.DependsOn = a.stack, a.deletionPolicy, a.DependsOn
	terms.DataPolicy, terms.ServiceAccount = a.DataPolicy, a.serviceAccount
	if settled {
		terms.Optional = in.optional
	}
	if settled && terms.ArtifactVersion != in.version && terms.Spec != specDigest(a) {
		terms.Spec, terms.ArtifactVersion = specDigest(a), in.version
	}
	return terms
}

// setTerms brings changed terms into the record. One that isn't proven gets them once it is.
func (q *request) setTerms(ctx context.Context, a *addon, record deliver.Summary, terms deliver.Terms) followUp {
	if !q.isProven(record) || equality.Semantic.DeepEqual(record.Terms(), terms) {
		return followUp{}
	}
	proof, err := q.Deliverer.SetTerms(ctx, q.workload.target(), a.release(), q.ca.UID, q.proofOf(a.release()), terms)
	if err != nil {
		return requestFailed(err, a.status()).followUp
	}
	q.noteProof(a.release(), proof)
	return followUp{}
}
