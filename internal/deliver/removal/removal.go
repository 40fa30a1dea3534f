// SPDX-License-Identifier: Apache-2.0

// Package removal takes an add-on out of a cluster: hooks, objects, and the records of what was taken over.
package removal

import (
	"context"
	"fmt"
	"slices"

	helmcommon "helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/history"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// Step removes what an add-on has.
type Step struct {
	Record *record.Record
	Past   *history.History
	// Reader reads metadata with the manager's rights.
	Reader client.Reader
	// Prune deletes objects to the end.
	Prune func(context.Context, []record.Entry) (outcome.Stop, error)
	// RunHooks runs the hooks of an event.
	RunHooks func(context.Context, helmrelease.HookEvent) (outcome.Stop, error)
	// Leaving are the releases that leave with this one.
	Leaving []record.Release
}

// Hooks runs the hooks of a removal. They prepare for the end of what the
// add-on has, or clear up after it. So they aren't run if something of it lives on in
// another add-on: the Job that is to uninstall a storage system would do so.
func (s *Step) Hooks(ctx context.Context, event helmrelease.HookEvent) (outcome.Stop, error) {
	if !has(s.Record.Helm.Hooks, event) || slices.Contains(s.Record.State.EventsDone, event.String()) {
		return outcome.Stop{}, nil
	}
	why, err := s.LivesOn(ctx)
	if err != nil {
		return outcome.Stop{}, err
	}
	if why == "" {
		return s.RunHooks(ctx, event)
	}
	s.Record.State.Notes = append(s.Record.State.Notes, fmt.Sprintf("%s hooks weren't run, as %s", event, why))
	s.Record.State.EventsDone = append(s.Record.State.EventsDone, event.String())
	return outcome.Stop{}, s.Past.Store.Update(ctx, s.Record)
}

func has(all []*helmrelease.Hook, event helmrelease.HookEvent) bool {
	return slices.ContainsFunc(all, func(h *helmrelease.Hook) bool { return slices.Contains(h.Events, event) })
}

// Objects deletes what the inventory says, and notes when that is done.
func (s *Step) Objects(ctx context.Context) (outcome.Stop, error) {
	if s.Record.State.ObjectsGone {
		return outcome.Stop{}, nil
	}
	inventory, err := s.Past.Scope.InventoryOf(s.Record)
	if err != nil {
		return outcome.Stop{}, err
	}
	if stop, err := s.Prune(ctx, inventory); stop.Is() || err != nil {
		return stop, err
	}
	if !has(s.Record.Helm.Hooks, helmrelease.HookPostDelete) {
		return outcome.Stop{}, nil
	}
	s.Record.State.ObjectsGone = true
	return outcome.Stop{}, s.Past.Store.Update(ctx, s.Record)
}

// LivesOn says which object of the inventory now belongs to which other add-on that stays, "" for none.
func (s *Step) LivesOn(ctx context.Context) (string, error) {
	inventory, err := s.Past.Scope.InventoryOf(s.Record)
	if err != nil {
		return "", err
	}
	for _, e := range inventory {
		if e.Shared || e.CRD {
			continue
		}
		live, err := s.Past.Scope.Metadata(ctx, s.Reader, e)
		if object.IsGone(err) {
			continue
		}
		if err != nil {
			return "", s.Past.Hidden.FailureOf(e.Key(), err)
		}
		if owner := object.OwnerOf(&live.ObjectMeta); owner != s.Past.Scope.Release && owner != (record.Release{}) && !slices.Contains(s.Leaving, owner) {
			return fmt.Sprintf("%s belongs to add-on %s now", e.Key(), owner), nil
		}
	}
	return "", nil
}

// IsCalledOff reports whether the release is one of Helm's that was to be taken over, and of which no revision of
// the add-on was ever deployed. The objects of Helm's release stay with it then.
func IsCalledOff(rec *record.Record, records []record.Summary) bool {
	ofHelm := func(s record.Summary) bool { return !s.Owned && s.Status == record.StatusDeployed }
	was := func(s record.Summary) bool {
		return s.Owned && (s.Status == record.StatusDeployed || s.Status == string(helmcommon.StatusSuperseded))
	}
	return (rec.State.Adopted != nil || slices.ContainsFunc(records, ofHelm)) && !slices.ContainsFunc(records, was)
}
