// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver/hooks"
	"github.com/cluster-chandler/chandler/internal/deliver/memory"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/revision"
)

// Values of Summary.Status.
const (
	StatusDeployed     = record.StatusDeployed
	StatusUninstalling = record.StatusUninstalling
)

// Desired is an add-on as it is wanted.
type Desired = revision.Desired

// RenderInput is what rendering depends on beside the add-on's own inputs.
type RenderInput = revision.RenderInput

// Rendering is a rendered add-on.
type Rendering = revision.Rendering

// HookRunAnnotation on a hook's object says which run of the hook it is.
const HookRunAnnotation = hooks.RunAnnotation

// ErrUnproven says that nothing was done, because the newest record of the release isn't proven.
var ErrUnproven = errors.New("its release record isn't as this instance wrote it")

// WithOneWait returns a context whose calls wait no more for memory once one of them has waited in vain, and whether one has.
func WithOneWait(ctx context.Context) (_ context.Context, waited func() bool) {
	return memory.WithOneWait(ctx)
}

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
	// Secrets writes records, with the manager's rights.
	Secrets record.Writer
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

// Options of a Deliverer.
type Options struct {
	// Notify is called with the name of a Target when Ensure or Remove has something
	// to do there again. It must not block.
	Notify func(target string)
	// Clock defaults to the real one.
	Clock clock.WithDelayedExecution
	// Memory is where records and objects count. Nil counts nothing.
	Memory *budget.Budget
	// MaxKept bounds what is kept in memory of the objects and records of add-ons that aren't settled, in bytes.
	// Defaults to 32 MiB.
	MaxKept int64
}

// maxKept is the default of MaxKept.
const maxKept = 32 << 20

// Deliverer installs, upgrades, repairs and removes add-ons. It is safe for
// concurrent use; calls for the same add-on wait for each other.
type Deliverer struct {
	options Options

	mu       sync.Mutex
	sessions map[sessionKey]*session
	wakes    map[string]uint64 // how often an add-on that waited could go on, by target, until that is forgotten
	kept     *budget.Cache[*session, *contents]
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
		options: o, sessions: make(map[sessionKey]*session), wakes: make(map[string]uint64),
		kept: budget.NewCache[*session](o.Memory, cmp.Or(o.MaxKept, maxKept), (*contents).size),
	}
}

// Forget stops all watches of a cluster and forgets what is in memory of it.
func (d *Deliverer) Forget(target string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.wakes, target)
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
	store := d.storeOf(t, r, nil)
	records, err := store.List(ctx)
	if err != nil || len(records) == 0 || !records[0].IsProvenBy(proof) {
		return proof, err
	}
	is := records[0]
	is.Terms, is.OwnerUID = terms, owner
	is, err = store.Rewrite(ctx, records[0], is)
	return is.Proof(), err
}

// Keys returns the keys of a rendering's objects, as a release would have them in the
// cluster.
func (d *Deliverer) Keys(t Target, release Release, in *Rendering) ([]ObjectKey, error) {
	scope := t.scopeOf(release)
	crds, objects, err := scope.PrepareBoth(in.CRDs, in.Objects)
	var keys []ObjectKey
	for _, o := range slices.Concat(crds, objects) {
		keys = append(keys, record.KeyOf(o))
	}
	return keys, err
}

// Holds returns the objects that a release has by its newest record; false if that
// doesn't say.
func (d *Deliverer) Holds(ctx context.Context, t Target, release Release) ([]ObjectKey, bool, error) {
	m := memory.New(ctx, d.options.Memory, d.options.Clock)
	defer m.End()
	rec, err := d.storeOf(t, release, m).Newest(ctx)
	if record.IsUnreadable(err) || rec == nil && err == nil {
		return nil, false, nil
	}
	var inventory []record.Entry
	if err == nil {
		inventory, err = t.scopeOf(release).InventoryOf(rec)
	}
	if err != nil {
		return nil, false, fmt.Errorf("add-on %s: %w", release, err)
	}
	keys := make([]ObjectKey, 0, len(inventory))
	for _, e := range inventory {
		if !e.Shared {
			keys = append(keys, e.Key())
		}
	}
	return keys, true, nil
}
