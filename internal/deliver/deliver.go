// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	helmcommon "helm.sh/helm/v4/pkg/release/common"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/lru"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/shares"
)

// Values of Summary.Status.
const (
	// StatusDeployed: the add-on is installed, and was ready.
	StatusDeployed = string(helmcommon.StatusDeployed)
	// StatusUninstalling: its removal has begun.
	StatusUninstalling = string(helmcommon.StatusUninstalling)
)

// Release identifies an add-on in a cluster: it is the name of its Helm release.
type Release = record.Release

// ObjectKey identifies an object of an add-on.
type ObjectKey = record.ObjectKey

// Summary is what the metadata of a release's newest record says.
type Summary = record.Summary

// Terms are what a record says beside what was installed.
type Terms = record.Terms

// SummaryOf returns what a Secret's metadata says of a revision; false if it is no record.
func SummaryOf(secret *metav1.ObjectMeta) (Summary, bool) { return record.SummaryOf(secret) }

// Target is one workload cluster.
type Target struct {
	// Name identifies the cluster. Options.Notify gets it.
	Name string
	// Client reads and writes an add-on's objects directly, without a cache. Its RESTMapper
	// discovers kinds that it doesn't know; if it has a Reset method, that is used as well.
	// Its scheme has the core group.
	Client client.Client
	// Dynamic is for watches of these, with the manager's rights: they are of all namespaces.
	Dynamic dynamic.Interface
	// Own is the manager's own client where Client acts as somebody else. It reads and writes
	// records, and looks which namespaces, APIs and instances of kinds there are. Nil if Client
	// is the manager's.
	Own client.Client
	// Discovery returns a client that tells which kinds there are. Its requests end with
	// the context.
	Discovery func(context.Context) (discovery.DiscoveryInterface, error)
	// Context ends when the connection does. Watches hang on it.
	Context context.Context //nolint:containedctx // watches outlive the call that starts them
}

// own returns the manager's own client.
func (t Target) own() client.Client {
	if t.Own == nil {
		return t.Client
	}
	return t.Own
}

// scopeOf returns the scope of a release in the cluster.
func (t Target) scopeOf(release Release) *object.Scope {
	return &object.Scope{Release: release, Mapper: t.Client.RESTMapper()}
}

// Desired is an add-on as it is wanted.
type Desired struct {
	Release
	// Owner is the ClusterAddon, as "namespace/name". A release of another owner is refused.
	Owner string
	// OwnerUID is the ClusterAddon's. It tells one from that of the same name in another
	// management cluster.
	OwnerUID types.UID
	// Proof is that of the add-on's record as it was written last: see [Outcome]. "" has the record made
	// once more before anything is done by it.
	Proof string
	// Artifact is kept in the record, and so are the terms: see [Summary].
	Artifact string
	Terms
	// Leaving are releases of the same Owner that are to be removed once this one is
	// installed: what they have of it is taken over.
	Leaving []Release
	// Kept are releases of the same Owner in this namespace that nobody wants, and that stay for now. The values that their
	// charts generated are used again, as their objects may go over to this one later.
	Kept []Release
	// Digest returns the digest of all inputs, given the facts of the cluster that
	// the record's rendering used, in JSON; "" if there is no record.
	Digest func(ctx context.Context, factsUsed string) (string, error)
	// CreateNamespace makes the release's namespace if it is missing.
	CreateNamespace bool
	// AdoptRelease is the release of Helm that is taken over by the first revision, if it
	// isn't the one of the add-on's own name and namespace. Its Namespace is that of its record.
	AdoptRelease Release
	Adoption     addonsv1.AdoptionPolicy
	// Ignore are rules for what other managers own: it stays as it is.
	Ignore drift.Rules
	// Seen returns the fields of an object that the add-on owns, as a watch shows them; false if
	// they aren't known. An object that an upgrade leaves as it is needn't be read then. Nil knows
	// nothing.
	Seen      func(ObjectKey) (drift.Fields, bool)
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
	// Render makes the objects. It is called only for a new revision. A *failure.Error becomes the Outcome, any other
	// error is returned.
	Render func(ctx context.Context, in RenderInput) (*Rendering, error)
}

// RenderInput is what rendering depends on beside the add-on's own inputs.
type RenderInput struct {
	// Revision of the release that is to be made.
	Revision int
	// Upgrade says that the add-on is installed already.
	Upgrade bool
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

// Options of a Deliverer.
type Options struct {
	// Notify is called with the name of a Target when Ensure or Remove has something
	// to do there again. It must not block.
	Notify func(target string)
	// Clock defaults to the real one.
	Clock clock.WithDelayedExecution
	// MaxKept bounds what is kept in memory of the objects and records of add-ons that aren't settled, in bytes.
	// Defaults to 32 MiB.
	MaxKept int
}

// Deliverer installs, upgrades, repairs and removes add-ons. It is safe for
// concurrent use; calls for the same add-on wait for each other.
type Deliverer struct {
	options Options

	mu       sync.Mutex
	sessions map[sessionKey]*session
	kept     *lru.Cache[*session, *contents]
	room     *shares.Shares
	decoding *semaphore.Weighted // of records: they take thrice their memory meanwhile
}

// New returns a Deliverer.
func New(o Options) *Deliverer {
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Deliverer{
		options: o, sessions: make(map[sessionKey]*session), kept: lru.New[*session](int64(cmp.Or(o.MaxKept, maxKept)), (*contents).size),
		room: shares.New(maxWorkedOn), decoding: semaphore.NewWeighted(maxDecoding),
	}
}

// Forget stops all watches of a cluster and forgets what is in memory of it.
func (d *Deliverer) Forget(target string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, s := range d.sessions {
		if key.target == target {
			s.tracker.Stop()
			delete(d.sessions, key)
			d.kept.Take(s)
		}
	}
}

// SetTerms brings changed terms into the newest record, from which they are read when
// nothing else is left, and the UID of the owner that changes them. Without a record that has the proof it does
// nothing. It returns the proof that the record has then.
func (d *Deliverer) SetTerms(ctx context.Context, t Target, r Release, owner types.UID, proof string, terms Terms) (string, error) {
	store := d.storeOf(t, r)
	records, _, err := store.List(ctx)
	if err != nil || len(records) == 0 || !records[0].IsProvenBy(proof) {
		return proof, err
	}
	is := records[0]
	is.Terms, is.OwnerUID = terms, owner
	is, err = store.Rewrite(ctx, records[0], is)
	return is.Proof(), err
}

// storeOf has a release's records, for who looks at them apart from a session.
func (d *Deliverer) storeOf(t Target, r Release) *record.Store {
	return &record.Store{
		Client: t.own(), Release: r, Clock: d.options.Clock, FieldManager: object.FieldManager(r), Decoding: d.decoding,
	}
}
