// SPDX-License-Identifier: Apache-2.0

// Package preview finds out what delivery would do to the objects of an add-on. It asks the functions that delivery asks, by reads
// and dry runs alone.
package preview

import (
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/claim"
	"github.com/cluster-chandler/chandler/internal/deliver/hidden"
	"github.com/cluster-chandler/chandler/internal/deliver/keep"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/revision"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/plan"
)

// Coming are kinds and namespaces that come, or change, with a plan: the cluster can't be asked about their objects yet. The add-ons
// of a cluster share it, each one after those that it depends on.
type Coming struct {
	Kinds      sets.Set[schema.GroupKind]
	Namespaces sets.Set[string]
}

// NewComing returns none.
func NewComing() *Coming {
	return &Coming{Kinds: sets.New[schema.GroupKind](), Namespaces: sets.New[string]()}
}

// Previewer finds out what would become of the objects of an add-on.
type Previewer struct {
	Applier apply.Applier
	// Claimer decides whose an object is, and Keeper which objects stay.
	Claimer *claim.Claimer
	Keeper  *keep.Keeper
	Hidden  *hidden.Secrets
	// Ignore are rules for what other managers own.
	Ignore drift.Rules
	// Seen returns the fields of an object that the add-on owns, as a watch shows them; false if they aren't known.
	Seen func(record.ObjectKey) (drift.Fields, bool)
	// Recreate makes objects again of which a field is to change that can't be changed.
	Recreate bool
	// Conceals has no value of a field shown.
	Conceals bool
	// Key is that of the digests of fields.
	Key    []byte
	Coming *Coming

	mu         sync.Mutex
	there      sets.Set[types.UID]                             // of objects that the revision has
	aggregated map[schema.GroupVersion]bool                    // whether another API server than the cluster's own has the kinds
	changes    map[record.ObjectKey]plan.Change                // of objects of the revision, but for those that stay the same
	entries    map[record.ObjectKey]record.Entry               // of the inventory
	before     map[record.ObjectKey]*unstructured.Unstructured // manifests of the revision before
	unchanged  map[record.ObjectKey]record.Entry               // objects that the deployed revision has just so
}

// Objects returns what would become of a revision's objects, but for those that stay the same. CRDs and namespaces come first: the
// cluster can't be asked about objects that need them.
func (p *Previewer) Objects(ctx context.Context, made *revision.Made) ([]plan.Change, error) {
	p.there, p.aggregated, p.changes = sets.New[types.UID](), map[schema.GroupVersion]bool{}, map[record.ObjectKey]plan.Change{}
	p.entries, p.before, p.unchanged = map[record.ObjectKey]record.Entry{}, map[record.ObjectKey]*unstructured.Unstructured{}, made.Unchanged
	for _, e := range made.Inventory {
		p.entries[e.Key()] = e
	}
	for _, o := range made.Previous {
		p.before[record.KeyOf(o)] = o
	}
	var first, rest []*unstructured.Unstructured
	for _, o := range made.Objects {
		if gk := o.GroupVersionKind().GroupKind(); gk == object.CRDKind || gk == object.NamespaceKind {
			first = append(first, o)
		} else {
			rest = append(rest, o)
		}
	}
	for i, pass := range [][]*unstructured.Unstructured{made.CRDs, first, rest} {
		if err := p.pass(ctx, pass, i == 0); err != nil {
			return nil, err
		}
	}
	var all []plan.Change
	for _, o := range slices.Concat(made.CRDs, made.Objects) {
		if c, changes := p.changes[record.KeyOf(o)]; changes {
			all = append(all, c)
		}
	}
	return all, nil
}

func (p *Previewer) pass(ctx context.Context, objects []*unstructured.Unstructured, crds bool) error {
	failures := make([]error, len(objects))
	object.InParallel(len(objects), func(i int) *object.Failure {
		change, err := p.look(ctx, objects[i], crds)
		p.mu.Lock()
		defer p.mu.Unlock()
		if failures[i] = err; change.Action != "" {
			p.changes[record.KeyOf(objects[i])] = change
		}
		return nil
	})
	for _, o := range objects {
		p.note(o, p.changes[record.KeyOf(o)])
	}
	return errors.Join(failures...)
}

// note notes which kinds and namespaces come.
func (p *Previewer) note(o *unstructured.Unstructured, c plan.Change) {
	switch gk := o.GroupVersionKind().GroupKind(); {
	case gk == object.NamespaceKind && c.Action == plan.Create:
		p.Coming.Namespaces.Insert(o.GetName())
	case gk == object.CRDKind && (c.Action == plan.Create || c.Action == plan.Unknown || slices.ContainsFunc(c.Fields, isOfSpec)):
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		p.Coming.Kinds.Insert(schema.GroupKind{Group: group, Kind: kind})
	}
}

// Gone returns what would become of objects that the add-on has by its inventory, and doesn't want any more.
func (p *Previewer) Gone(ctx context.Context, entries []record.Entry, adopted *record.AdoptedRelease, calledOff bool) ([]plan.Change, error) {
	changes, failures := make([]plan.Change, len(entries)), make([]error, len(entries))
	going := map[record.ObjectKey]bool{}
	for _, e := range entries {
		going[e.Key()] = true
	}
	p.Keeper.Goes = func(kind schema.GroupKind, namespace, name string) bool {
		return going[record.ObjectKey{Group: kind.Group, Kind: kind.Kind, Namespace: namespace, Name: name}]
	}
	object.InParallel(len(entries), func(i int) *object.Failure {
		changes[i], failures[i] = p.gone(ctx, entries[i], adopted, calledOff)
		return nil
	})
	return slices.DeleteFunc(changes, func(c plan.Change) bool { return c.Action == "" }), errors.Join(failures...)
}

func (p *Previewer) gone(ctx context.Context, e record.Entry, adopted *record.AdoptedRelease, calledOff bool) (plan.Change, error) {
	c := plan.Change{Object: ObjectOf(e.GroupVersionKind().GroupVersion().String(), e.Key())}
	live, err := p.Applier.Scope.Metadata(ctx, p.Keeper.Reader, e)
	if object.IsGone(err) {
		return plan.Change{}, nil
	}
	if err != nil {
		return p.failed(c, e.Key(), err)
	}
	verdict, why, _, err := p.Keeper.Decide(ctx, keep.Facts{
		Entry: e, Live: &live.ObjectMeta, Release: p.Applier.Scope.Release, Adopted: adopted, CalledOff: calledOff, IsApplied: p.there.Has(live.UID),
	}, live)
	switch {
	case err != nil:
		return p.failed(c, e.Key(), err)
	case verdict == keep.Goes:
		c.Action = plan.Delete
	case why != "":
		c.Action, c.Message = plan.Keep, p.Hidden.In("It "+why)
	default:
		return plan.Change{}, nil
	}
	return c, nil
}

// ObjectOf names an object of a version of an API.
func ObjectOf(apiVersion string, key record.ObjectKey) plan.Object {
	return plan.Object{APIVersion: apiVersion, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name}
}
