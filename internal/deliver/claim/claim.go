// SPDX-License-Identifier: Apache-2.0

// Package claim applies objects that may be another's: [object.Claimant] decides, by how the object is in the cluster.
package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// Claimer applies objects of an add-on. It is safe for concurrent use.
type Claimer struct {
	Applier apply.Applier
	// Adoption says what to do with objects that are nobody's.
	Adoption  addonsv1.AdoptionPolicy
	CRDPolicy addonsv1.CRDPolicy
	// Leaving are releases whose objects may be taken over, and StoreOf returns their records.
	Leaving []record.Release
	StoreOf func(record.Release) *record.Store

	mu          sync.Mutex
	transferred []record.Release
}

// Apply applies an object, of which the inventory has an entry. It returns the object as it is in the cluster
// then, and whether that is left to its owner. The server tells whether it is the add-on's to apply: what is
// new mustn't be there, and what was applied before has to have its UID.
func (c *Claimer) Apply(
	ctx context.Context, o *unstructured.Unstructured, entry record.Entry, crd bool,
) (result *unstructured.Unstructured, left bool, err error) {
	if crd && c.CRDPolicy == addonsv1.CRDPolicyCreate {
		if _, err := c.Applier.Metadata(ctx, entry); !apierrors.IsNotFound(err) {
			result, err = c.Applier.Get(ctx, o) // an error comes up there again
			return result, true, err
		}
	}
	if entry.UID != "" {
		if result, err = c.Applier.ApplyOwn(ctx, o, entry.UID); !errors.Is(err, apply.ErrAnother) {
			return result, false, err
		}
	}
	if !entry.Helm { // else it is there
		if result, err = c.Applier.ApplyNew(ctx, o); !apply.IsThere(err) {
			return result, false, err
		}
	}
	return c.ApplyThere(ctx, o, entry, crd)
}

// ApplyThere applies an object that is there, and isn't known to be the add-on's, after a look at it.
func (c *Claimer) ApplyThere(
	ctx context.Context, o *unstructured.Unstructured, entry record.Entry, crd bool,
) (result *unstructured.Unstructured, left bool, err error) {
	live, err := c.Applier.Metadata(ctx, entry)
	if apierrors.IsNotFound(err) { // if somebody makes it in this moment, there is a conflict
		result, err = c.Applier.Apply(ctx, o, false)
		return result, false, err
	}
	if err != nil {
		return nil, false, err
	}
	key := record.KeyOf(o)
	verdict, reason, message := c.claimant(key, entry, crd).Decide(&live.ObjectMeta)
	switch verdict {
	case object.ClaimRefuse:
		return nil, false, object.Reject(key, reason, message)
	case object.ClaimLeave:
		result, err = c.Applier.Get(ctx, o)
		return result, true, err
	case object.ClaimShare:
		result, err = c.Applier.Share(ctx, o, live)
		return result, true, err
	case object.ClaimIfEqual:
		if err = c.Applier.Differs(ctx, o, live); err == nil {
			result, err = c.Applier.Apply(ctx, o, false)
		}
		return result, false, err
	case object.ClaimAdopt:
		err = c.Applier.TakeFields(ctx, live)
	case object.ClaimTakeOver:
		err = c.takeOver(ctx, live, key)
	}
	if err == nil {
		result, err = c.Applier.ApplyOwn(ctx, o, live.UID)
	}
	return result, false, err
}

// Decide tells how an object that is there would be applied, and why not.
func (c *Claimer) Decide(entry record.Entry, crd bool, live *metav1.ObjectMeta) (verdict object.Claim, reason, message string) {
	switch {
	case crd && c.CRDPolicy == addonsv1.CRDPolicyCreate:
		return object.ClaimLeave, "", ""
	case entry.UID != "" && entry.UID == live.UID:
		return object.ClaimOwn, "", ""
	}
	return c.claimant(entry.Key(), entry, crd).Decide(live)
}

func (c *Claimer) claimant(key record.ObjectKey, entry record.Entry, crd bool) object.Claimant {
	return object.Claimant{
		Release: c.Applier.Scope.Release, Key: key, Policy: c.Adoption, CRD: crd, Had: entry.UID != "", Helm: entry.Helm, Leaving: c.Leaving,
	}
}

// An object may be in a release that is about to go, and in the one that is being
// installed. It goes over from the one to the other: it is never deleted.

// takeOver makes an object of a leaving release the add-on's to apply.
func (c *Claimer) takeOver(ctx context.Context, live *metav1.PartialObjectMetadata, key record.ObjectKey) error {
	from := object.OwnerOf(&live.ObjectMeta)
	if from != c.Applier.Scope.Release {
		if live.DeletionTimestamp != nil {
			return object.Postpone(key, fmt.Sprintf("it was deleted with add-on %s, and isn't gone yet", from))
		}
		if err := c.markTransferred(ctx, from); err != nil {
			return err
		}
	}
	return c.Applier.TakeFields(ctx, live, object.ManagersAmong(&live.ObjectMeta, c.Leaving)...)
}

// markTransferred notes in the newest record of a release that something of it has another
// owner now. Should the release be wanted again, it isn't as it was installed: its objects are
// looked at and applied again. The transfer is noted first, as a crash may follow.
func (c *Claimer) markTransferred(ctx context.Context, from record.Release) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.transferred, from) {
		return nil
	}
	store := c.StoreOf(from)
	rec, err := store.Newest(ctx)
	if err != nil {
		return err
	}
	if rec != nil && !rec.Transferred() {
		rec.MarkTransferred()
		if err := store.Update(ctx, rec); err != nil {
			return err
		}
	}
	c.transferred = append(c.transferred, from)
	return nil
}
