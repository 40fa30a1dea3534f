// SPDX-License-Identifier: Apache-2.0

// Package revision decides which revision of an add-on is next, and makes it: from the inputs and the records of those before it to
// the record that is written. Nothing of the cluster but the record is changed.
package revision

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/together"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// Desired is an add-on as it is wanted.
type Desired struct {
	record.Release
	// Owner is the ClusterAddon, as "namespace/name". A release of another owner is refused.
	Owner string
	// OwnerUID is the ClusterAddon's. It tells one from that of the same name in another
	// management cluster.
	OwnerUID types.UID
	// Proof is that of the add-on's record as it was written last. "" has the record made
	// once more before anything is done by it.
	Proof string
	// Newest is the name of the newest record's Secret, as it was seen last. That is read while the records are listed. "" for none.
	Newest string
	// Installs are add-ons that are installed beside this one; nil for none.
	Installs *together.Installs
	// Yields reports whether another add-on of the cluster can go on, so that the call is to end between two waves of objects. Nil never
	// does.
	Yields func() bool
	// Artifact is kept in the record, and so are the terms, and the revision of the stack: see [record.Summary].
	Artifact string
	record.Terms
	StackRevision string
	// Leaving are releases of the same Owner that are to be removed once this one is
	// installed: what they have of it is taken over.
	Leaving []record.Release
	// Kept are releases of the same Owner in this namespace that nobody wants, and that stay for now. The values that their
	// charts generated are used again, as their objects may go over to this one later.
	Kept []record.Release
	// Digest returns the digest of all inputs, given the facts of the cluster that
	// the record's rendering used, in JSON; "" if there is no record.
	Digest func(ctx context.Context, factsUsed string) (string, error)
	// DigestBy returns that digest with the facts as they were used, also if the cluster has others.
	DigestBy func(factsUsed string) string
	// CreateNamespace makes the release's namespace if it is missing.
	CreateNamespace bool
	// AdoptRelease is the release of Helm that is taken over by the first revision, if it
	// isn't the one of the add-on's own name and namespace. Its Namespace is that of its record.
	AdoptRelease record.Release
	Adoption     addonsv1.AdoptionPolicy
	// Ignore are rules for what other managers own: it stays as it is.
	Ignore drift.Rules
	// Seen returns the fields of an object that the add-on owns, as a watch shows them; false if
	// they aren't known. An object that an upgrade leaves as it is needn't be read then. Nil knows
	// nothing.
	Seen      func(record.ObjectKey) (drift.Fields, bool)
	OnFailure addonsv1.FailurePolicy
	// Again tries again at once what failed, also an upgrade that was rolled back.
	Again bool
	// Recreate makes objects again of which a field is to change that can't be changed.
	Recreate bool
	// PruneEarly deletes what the revision doesn't have before its objects are ready.
	PruneEarly bool
	CRDPolicy  addonsv1.CRDPolicy
	// HistoryLimit is the number of revisions that are kept. Defaults to 5.
	HistoryLimit int
	// ProgressDeadline is how long each hook, and all objects after they were
	// applied, may take to become ready.
	ProgressDeadline time.Duration
	Readiness        []addonsv1.ReadinessCheck
	// Postcondition has to hold before the add-on is ready, after all else; nil: there
	// is none. It tells what is waited for, "" if nothing is, and when to ask again.
	Postcondition func(ctx context.Context) (waiting string, retryAfter time.Duration, err error)
	// Sensitive are strings from Secrets: they are hidden in all messages. The record keeps them.
	Sensitive []string
	// WatchFilter is the value of the record's label cluster.x-k8s.io/watch-filter; "" for none.
	WatchFilter string
	// Recorded has an earlier revision made again that has the same Spec and Inputs. Nothing is rendered, and Digest isn't
	// asked.
	Recorded bool
	// TakesValues has a release of Helm that is taken over keep its values, which may be secret.
	TakesValues bool
	// Render makes the objects. It is called only for a new revision. A *failure.Error becomes the outcome, any other
	// error is returned.
	Render func(ctx context.Context, in RenderInput) (*Rendering, error)
}

// RenderInput is what rendering depends on beside the add-on's own inputs.
type RenderInput struct {
	// Revision of the release that is to be made.
	Revision int
	// Upgrade says that the add-on is installed already.
	Upgrade bool
	// Values take the place of the add-on's own, unless they are nil. Nothing says which of them are secret.
	Values map[string]any
	// Generated are the values that the revision before made up.
	Generated map[string]string
	// Lookup and Live read objects that the release has: see [job.Chart]. Lookup
	// is nil if it has none, Live if Helm's release isn't taken over.
	Lookup func(context.Context, []job.Lookup) ([]job.LookupAnswer, error)
	Live   func(context.Context) ([]*unstructured.Unstructured, error)
}

// Rendering is a rendered add-on.
type Rendering struct {
	job.Result
	// Digest of all inputs, with the facts that rendering used.
	Digest string
	// FactsUsed in JSON. They shadow those of Result.
	FactsUsed string
	// Values for `helm get values`.
	Values map[string]any
}
