// SPDX-License-Identifier: Apache-2.0

// Package prune deletes objects that an add-on doesn't have any more, and waits until they are gone.
package prune

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/deletion"
	"github.com/cluster-chandler/chandler/internal/deliver/hidden"
	"github.com/cluster-chandler/chandler/internal/deliver/keep"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// Pruner deletes objects of an inventory.
type Pruner struct {
	// Record gets a note on each object that stays.
	Record *record.Record
	// Adopted is the release of Helm that the add-on takes over, if any.
	Adopted *record.AdoptedRelease
	// CalledOff says that the add-on is removed before any of its revisions was deployed.
	CalledOff bool

	Applier  apply.Applier
	Keeper   *keep.Keeper
	Deleter  *deletion.Deleter
	Patience outcome.Patience
	Hidden   *hidden.Secrets

	noting sync.Mutex
}

// Prune deletes the objects of the entries that are this add-on's, wave by wave. An object
// that stays loses the add-on's labels. A wave begins once the previous one is gone. With toTheEnd, the last
// wave is waited for, too.
func (p *Pruner) Prune(ctx context.Context, entries []record.Entry, toTheEnd bool) (outcome.Stop, error) {
	grouped := object.RemovalWaves(entries)
	left := len(entries)
	for _, wave := range grouped {
		left -= len(wave)
		remaining, failed := p.deleteWave(ctx, wave)
		stop, err := p.Patience.StopFor(failed.Worst(), outcome.ReasonPruneFailed)
		if stop.Is() || err != nil {
			return stop, err
		}
		if len(remaining) > 0 && (left > 0 || toTheEnd) {
			return p.Deleter.Await(remaining, outcome.ReasonPruneFailed, ""), nil
		}
	}
	p.Patience.End()
	return outcome.Stop{}, nil
}

// deleteWave deletes the objects of a wave, and returns those that may still be there.
func (p *Pruner) deleteWave(ctx context.Context, wave []record.Entry) ([]deletion.Object, object.Failures) {
	todo := slices.DeleteFunc(slices.Clone(wave), func(e record.Entry) bool { return p.Deleter.Going.IsOver(e.Key()) })
	failed := object.InParallel(len(todo), func(i int) *object.Failure {
		return p.Hidden.FailureOf(todo[i].Key(), p.deleteOne(ctx, todo[i]))
	})
	var remaining []deletion.Object
	for _, e := range todo {
		if g, left := p.Deleter.Going.Left(e.Key()); left {
			remaining = append(remaining, g)
		}
	}
	return remaining, failed
}

// deleteOne deletes an object if it is this add-on's and may go, unless that is under way.
func (p *Pruner) deleteOne(ctx context.Context, e record.Entry) error {
	if p.Deleter.IsUnderWay(e.Key()) {
		return nil
	}
	live := &metav1.PartialObjectMetadata{}
	var err error
	if !e.Shared {
		live, err = p.Applier.Scope.Metadata(ctx, p.Keeper.Reader, e)
	}
	if object.IsGone(err) {
		p.noteStaying(e, "")
		return nil
	}
	if err != nil {
		return err
	}
	verdict, why, marked, err := p.Keeper.Decide(ctx, keep.Facts{
		Entry: e, Live: &live.ObjectMeta, Release: p.Applier.Scope.Release, Adopted: p.Adopted, CalledOff: p.CalledOff,
		IsApplied: p.Keeper.IsApplied(live.UID),
	}, live)
	switch {
	case err != nil:
		return err
	case verdict == keep.Goes:
		_, err = p.Deleter.Delete(ctx, e, live)
		return err
	case verdict == keep.Disowned:
		if err := client.IgnoreNotFound(p.Applier.Disown(ctx, live, marked)); err != nil {
			return err
		}
	}
	p.noteStaying(e, why)
	return nil
}

// noteStaying remembers that nothing is to be done about an entry any more, and
// why its object stays, if it does and people are to know that.
func (p *Pruner) noteStaying(e record.Entry, why string) {
	p.Deleter.End(e.Key())
	p.noting.Lock()
	defer p.noting.Unlock()
	note := fmt.Sprintf("%s %s", e.Key(), why)
	if notes := &p.Record.State.Notes; why != "" && !slices.Contains(*notes, note) {
		*notes = append(*notes, note)
		slices.Sort(*notes)
	}
}
