// SPDX-License-Identifier: Apache-2.0

// Package preview finds out what delivery would do to the objects of an add-on. It asks the functions that delivery asks, by reads
// and dry runs alone.
package preview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/claim"
	"github.com/cluster-chandler/chandler/internal/deliver/hidden"
	"github.com/cluster-chandler/chandler/internal/deliver/install"
	"github.com/cluster-chandler/chandler/internal/deliver/keep"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/revision"
	"github.com/cluster-chandler/chandler/internal/plan"
)

// Coming are kinds and namespaces that come, or change, with a plan: the cluster can't be asked about their objects yet. The add-ons
// of a cluster share it, each one after those that it depends on.
type Coming struct {
	Kinds      sets.Set[schema.GroupKind]
	Namespaces sets.Set[string]
	// Free are objects that other add-ons delete first, and Taken those that an add-on takes over.
	Free  sets.Set[record.ObjectKey]
	Taken map[record.ObjectKey]record.Release
}

// NewComing returns what comes before the first add-on: nothing but objects that are free.
func NewComing(free sets.Set[record.ObjectKey]) *Coming {
	return &Coming{Kinds: sets.New[schema.GroupKind](), Namespaces: sets.New[string](), Free: free, Taken: map[record.ObjectKey]record.Release{}}
}

// Previewer finds out what would become of the objects of an add-on.
type Previewer struct {
	Applier apply.Applier
	// Claimer decides whose an object is, and Keeper which objects stay.
	Claimer *claim.Claimer
	Keeper  *keep.Keeper
	Hidden  *hidden.Secrets
	install.Policy
	// Conceals has no value of a field shown.
	Conceals bool
	Coming   *Coming

	there      sync.Map                                        // types.UID of each object that the revision has
	aggregated sync.Map                                        // schema.GroupVersion to what tells whether another API server than the cluster's own has the kinds
	entries    map[record.ObjectKey]record.Entry               // of the inventory and the revision
	before     map[record.ObjectKey]*unstructured.Unstructured // manifests of the revision before
	unchanged  map[record.ObjectKey]record.Entry               // objects that the deployed revision has just so
}

// Objects returns what would become of a revision's objects, but for those that stay the same. CRDs and namespaces come first: the
// cluster can't be asked about objects that need them.
func (p *Previewer) Objects(ctx context.Context, made *revision.Made) ([]plan.Change, error) {
	p.entries, p.before, p.unchanged = map[record.ObjectKey]record.Entry{}, record.ByKey(made.Previous), made.Unchanged
	for _, e := range record.Union(made.Inventory, object.EntriesOf(made.CRDs, made.Objects)) {
		p.entries[e.Key()] = e
	}
	var first, rest []*unstructured.Unstructured
	for _, o := range made.Objects {
		if gk := o.GroupVersionKind().GroupKind(); gk == object.CRDKind || gk == object.NamespaceKind {
			first = append(first, o)
		} else {
			rest = append(rest, o)
		}
	}
	var all []plan.Change
	for i, pass := range [][]*unstructured.Unstructured{made.CRDs, first, rest} {
		changes, err := each(pass, func(o *unstructured.Unstructured) (plan.Change, error) { return p.look(ctx, o, i == 0) }, p.note)
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	return all, nil
}

// each returns what becomes of some things, but for those that stay the same. Each of them is noted in its turn.
func each[T any](of []T, look func(T) (plan.Change, error), note func(T, plan.Change)) ([]plan.Change, error) {
	changes, failures := make([]plan.Change, len(of)), make([]error, len(of))
	object.InParallel(len(of), func(i int) *object.Failure {
		changes[i], failures[i] = look(of[i])
		return nil
	})
	for i := range of {
		note(of[i], changes[i])
	}
	return slices.DeleteFunc(changes, func(c plan.Change) bool { return c.Action == "" }), errors.Join(failures...)
}

// note notes which kinds and namespaces come, and which objects are taken over.
func (p *Previewer) note(o *unstructured.Unstructured, c plan.Change) {
	if c.Action == plan.Adopt {
		p.Coming.Taken[record.KeyOf(o)] = p.Applier.Scope.Release
	}
	switch gk := o.GroupVersionKind().GroupKind(); {
	case gk == object.NamespaceKind && c.Action == plan.Create:
		p.Coming.Namespaces.Insert(o.GetName())
	case gk == object.CRDKind && (c.Action == plan.Create || c.Action == plan.Unknown || slices.ContainsFunc(c.Altered, isOfSpec)):
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		p.Coming.Kinds.Insert(schema.GroupKind{Group: group, Kind: kind})
	}
}

// Gone returns what would become of objects that the add-on has by its inventory, and doesn't want any more.
func (p *Previewer) Gone(ctx context.Context, entries []record.Entry, adopted *record.AdoptedRelease, calledOff bool) ([]plan.Change, error) {
	p.Keeper.Goes = func(key record.ObjectKey) bool {
		return slices.ContainsFunc(entries, func(e record.Entry) bool { return e.Key() == key })
	}
	return each(entries, func(e record.Entry) (plan.Change, error) { return p.gone(ctx, e, adopted, calledOff) }, func(record.Entry, plan.Change) {})
}

func (p *Previewer) gone(ctx context.Context, e record.Entry, adopted *record.AdoptedRelease, calledOff bool) (plan.Change, error) {
	c := Of(e.GroupVersionKind().GroupVersion().String(), e.Key())
	live, err := p.Applier.Scope.Metadata(ctx, p.Keeper.Reader, e)
	if object.IsGone(err) {
		return plan.Change{}, nil
	}
	if err != nil {
		return p.answered(c, e.Key(), err)
	}
	_, isApplied := p.there.Load(live.UID)
	verdict, why, _, err := p.Keeper.Decide(ctx, keep.Facts{
		Entry: e, Live: &live.ObjectMeta, Release: p.Applier.Scope.Release, Adopted: adopted, CalledOff: calledOff, IsApplied: isApplied,
	}, live)
	switch {
	case err != nil:
		return p.answered(c, e.Key(), err)
	case verdict == keep.Goes && p.Coming.Taken[e.Key()] != (record.Release{}):
		return c.As(plan.Keep, "", fmt.Sprintf("It goes over to add-on %s", p.Coming.Taken[e.Key()])), nil
	case verdict == keep.Goes:
		return c.As(plan.Delete, "", ""), nil
	case why != "":
		return c.As(plan.Keep, "", p.Hidden.In("It "+why)), nil
	}
	return c, nil // it stays, and nothing is to be said of that
}

// Of returns a change of an object, of which nothing is known yet.
func Of(apiVersion string, key record.ObjectKey) plan.Change {
	return plan.Change{PlanChange: addonsv1.PlanChange{APIVersion: apiVersion, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name}}
}

// KeyOf returns the key of the object that is changed.
func KeyOf(c *plan.Change) record.ObjectKey {
	return record.ObjectKey{Group: schema.FromAPIVersionAndKind(c.APIVersion, c.Kind).Group, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
}
