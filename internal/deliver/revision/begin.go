// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/history"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// Maker makes the next revision of an add-on, and records it.
type Maker struct {
	Want    *Desired
	Past    *history.History
	Checks  readiness.Checks
	Applier apply.Applier
	// Own is the manager's own client.
	Own client.Client
	// IsImpersonated says that the Applier acts as a ServiceAccount.
	IsImpersonated bool
	// StoreOf returns the records of another release.
	StoreOf func(record.Release) *record.Store
	Clock   clock.PassiveClock
}

// Begin renders the revision that follows the records. It returns that of what is deployed if nothing but facts about the cluster
// changed. Else the revision isn't recorded yet.
func (m *Maker) Begin(ctx context.Context) (*Made, error) {
	made, err := m.Draft(ctx)
	if err != nil {
		return nil, err
	}
	if made.IsDeployed {
		is := made.before.Summary // it stays with other facts, for which hooks don't run
		is.Digest, is.FactsUsed, is.Otherwise = made.Record.Digest, made.Record.FactsUsed, made.Record.Otherwise
		return &Made{Record: made.before, IsDeployed: true}, m.rewrite(ctx, made.before, is)
	}
	if err := m.Past.Memory.Hold(ctx, -object.Weight(made.Previous...)); err != nil {
		return nil, err
	}
	made.Previous = nil
	if err := m.Want.Installs.EnsureNamespace(m.Want.Namespace, func(isMissing bool) error { return m.ensureNamespace(ctx, isMissing) }); err != nil {
		return nil, err
	}
	return made, m.MayKeepRecords(ctx)
}

// Draft renders the revision that follows the records, and writes nothing.
func (m *Maker) Draft(ctx context.Context) (*Made, error) {
	deployed, err := m.deployedRecord(ctx)
	if err != nil {
		return nil, err
	}
	made, err := m.make(ctx, m.Past.Next(), deployed, nil)
	if err != nil || deployed == nil {
		return made, err
	}
	if made.IsDeployed = made.isUnasked && made.isAs(deployed); !made.IsDeployed {
		made.Unchanged = made.SameAs(deployed.State.CRDsDigest)
	}
	return made, nil
}

// Repeat makes a revision with what an older one had. It is the rollback of the failed one, unless that is nil. Nothing is
// rendered, so the inputs may be gone by now. CRDs of crds/ stay as they are, as in Helm.
func (m *Maker) Repeat(ctx context.Context, to record.Summary, failed *record.Summary) (*Made, error) {
	old, err := m.Past.Load(ctx, to)
	if err != nil {
		return nil, err
	}
	if !old.IsIntact() {
		return nil, &record.Fault{Kind: record.Damaged, Secret: m.Want.Namespace + "/" + to.SecretName, Err: record.ErrChanged}
	}
	objects, _, err := m.Past.Manifest(ctx, old)
	if err != nil {
		return nil, err
	}
	inherited, err := m.inherit(ctx)
	if err != nil {
		return nil, err
	}
	return &Made{Record: m.copyOf(old, m.Past.Next(), failed), Inventory: inherited.objects, Objects: objects}, nil
}

// Record writes the record of a revision, with its objects beside the inventory of those before it. Nothing of it is in the cluster
// yet, but its record says what may be from now on.
func (m *Maker) Record(ctx context.Context, made *Made) error {
	entries, rec := object.EntriesOf(made.CRDs, made.Objects), made.Record
	rec.State.Inventory = record.Union(made.Inventory, entries)
	rec.Objects, rec.Kinds = int32(len(entries)), record.Kinds(entries)
	m.Past.Hidden.KeepIn(rec)
	if err := m.Past.Store.Create(ctx, rec); err != nil {
		return err
	}
	m.Past.Proof, m.Past.Records = rec.Proof(), append([]record.Summary{rec.Summary}, m.Past.Records...)
	return nil
}

// Trim deletes the records of revisions that are too old.
func (m *Maker) Trim(ctx context.Context) error {
	return m.Past.Store.Delete(ctx, record.Surplus(m.Past.Records, cmp.Or(m.Want.HistoryLimit, addonsv1.DefaultHistoryLimit))...)
}

// deployedRecord returns the newest record if it is proven, and says what is deployed; else nil.
func (m *Maker) deployedRecord(ctx context.Context) (*record.Record, error) {
	if len(m.Past.Records) == 0 || m.Past.Records[0].Status != record.StatusDeployed {
		return nil, nil
	}
	rec, err := m.Past.Load(ctx, m.Past.Records[0]) // it was loaded a moment ago, to inherit its inventory
	if err != nil || !m.Past.Believes(rec) {
		return nil, err
	}
	return rec, nil
}

// SameAs returns the entries of those objects and CRDs of crds/ that are just the same as in the previous revision. Their
// fields have to be known.
func (made *Made) SameAs(crdsDigest string) map[record.ObjectKey]record.Entry {
	same, previous := map[record.ObjectKey]record.Entry{}, record.ByKey(made.Previous)
	entries := make(map[record.ObjectKey]record.Entry, len(made.Inventory))
	for _, e := range made.Inventory {
		if e.UID != "" && e.Fields != 0 {
			entries[e.Key()] = e
		}
	}
	for _, o := range made.CRDs {
		if e, owned := entries[record.KeyOf(o)]; owned && crdsDigest == made.Record.State.CRDsDigest {
			same[e.Key()] = e
		}
	}
	for _, o := range made.Objects {
		was, known := previous[record.KeyOf(o)]
		e, owned := entries[record.KeyOf(o)]
		if known && owned && was.GroupVersionKind() == o.GroupVersionKind() && equality.Semantic.DeepEqual(was.Object, o.Object) {
			same[e.Key()] = e
		}
	}
	return same
}
