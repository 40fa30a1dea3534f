// SPDX-License-Identifier: Apache-2.0

// Package removal decides which installed add-ons a cluster is to have no more, and removes them.
package removal

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/memory"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// Removal removes the add-ons that aren't wanted any more.
type Removal struct {
	*gather.Observed
	// Leaving are the records of the add-ons to remove, in that order. Kept are those that stay.
	Leaving   []deliver.Summary
	Kept      []addonsv1.AddonStatus
	Deliverer *deliver.Deliverer
	Workload  workload.Cluster
	Proofs    *releases.Proofs
	Memory    *memory.Addons
	// Contents knows the objects of add-ons that may take over those of others.
	Contents Contents
}

// Remove removes add-ons that aren't wanted any more, dependents first. An add-on whose
// objects a wanted add-on may take over waits for that one. An add-on that a wanted add-on depends
// on stays.
func (q Removal) Remove(ctx context.Context, successors []*wanted.Addon, all *result.All) {
	if len(q.Leaving) == 0 {
		return
	}
	dependents := releases.Dependents(q.Leaving)
	each := sync.OnceValue(func() (all []successor) {
		for _, a := range successors {
			all = append(all, successor{a, q.Contents.of(ctx, a, q.Installed[a.Release()])})
		}
		return all
	})
	var now []deliver.Summary
	for _, record := range q.Leaving {
		if one, waits := q.waits(ctx, record, dependents[record.Release], each); waits {
			all.Add(one)
		} else {
			now = append(now, record)
		}
	}
	for _, record := range now {
		if all.Unreachable {
			all.Add(result.Addon{Status: unwantedStatus(q.Proofs, record, addonsv1.AddonRemoving)})
		} else {
			all.Add(q.remove(ctx, record))
		}
	}
}

// remove takes the removal of one add-on as far as it can go.
func (q Removal) remove(ctx context.Context, record deliver.Summary) (one result.Addon) {
	status := unwantedStatus(q.Proofs, record, addonsv1.AddonRemoving)
	if isOrphan(q.Observed, q.Proofs, record) && record.DeletionPolicy != addonsv1.DeletionPolicyOrphan {
		return result.Addon{Status: q.previous(status)} // the record couldn't be told
	}
	target, err := q.Workload.As(status.ServiceAccountName)
	if err != nil {
		return result.RequestFailed(err, q.previous(status))
	}
	outcome, err := q.Deliverer.Remove(ctx, target, record.Release, q.Proofs.Of(record.Release), releases.Names(q.Leaving)...)
	q.Memory.Forget(record.Release)
	switch {
	case errors.Is(err, deliver.ErrUnproven):
		q.Proofs.Note(record.Release, "")
		one = result.Because(status, reasons.StackUnknown, unknownText(record))
	case err != nil:
		one = result.RequestFailed(err, q.previous(status))
		one.Status.Phase = addonsv1.AddonRemoving
	case outcome.Gone:
		q.Memory.Installs.DeleteEntry(record.String())
		q.Workload.Conn.InvalidateFacts()
		one = result.Addon{Gone: true}
		one.Events = append(one.Events, removedEvent(&status, outcome.Message))
		one.Changed(status, addonsv1.ChangeRemoved, record.Version, "", record.Revision)
	default:
		one = result.Delivered(outcome, status)
	}
	one.Delivers(result.Remove, outcome, err)
	return one
}

// previous returns the add-on's last status, or the given one.
func (q Removal) previous(status addonsv1.AddonStatus) addonsv1.AddonStatus {
	return result.Previous(q.ClusterAddon.Status.Addons, status)
}

// removedEvent tells that an add-on is gone, or was let go of.
func removedEvent(addon *addonsv1.AddonStatus, message string) result.Event {
	note := fmt.Sprintf("Removed add-on %s from namespace %s", addon.Name, addon.Namespace)
	if message != "" {
		note += ". " + message
	}
	return result.Event{Kind: corev1.EventTypeNormal, Reason: "AddonRemoved", Action: "Remove", Note: note, Addon: addon}
}
