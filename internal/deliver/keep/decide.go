// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// Facts are known of an object that an add-on has by its inventory, and doesn't want.
type Facts struct {
	Entry   record.Entry
	Live    *metav1.ObjectMeta
	Release record.Release
	// Adopted is the release of Helm that the add-on takes over, if any.
	Adopted *record.AdoptedRelease
	// CalledOff says that the add-on is removed before any of its revisions was deployed.
	CalledOff bool
	// IsApplied says that the add-on has applied the object as another one, as after a move between API groups.
	IsApplied bool
}

// Verdict says whether an object stays.
type Verdict int

const (
	// Unsure: what the object holds decides, which [Keeper.Reason] tells.
	Unsure Verdict = iota
	// Goes: it is deleted.
	Goes
	// Stays as it is.
	Stays
	// Disowned: it stays, and isn't the add-on's any more.
	Disowned
)

// Decide returns whether an object belongs to the add-on and may go, and why it stays, if people are to know that.
func (f Facts) Decide() (verdict Verdict, why string) {
	owner := object.OwnerOf(f.Live)
	switch owns := object.IsOwned(f.Live, f.Entry, f.Release, f.Adopted); {
	case f.Entry.Shared:
		return Stays, "isn't this add-on's alone"
	case !owns && owner != record.Release{} && owner != f.Release:
		return Stays, fmt.Sprintf("belongs to add-on %s now", owner)
	case owns && f.CalledOff && f.Entry.Helm:
		return Disowned, "is left to Helm's release, as the add-on never had it whole"
	case !owns:
		return Stays, "isn't this add-on's any more"
	case f.IsApplied:
		return Stays, ""
	case f.Live.DeletionTimestamp != nil:
		return Goes, ""
	}
	return Unsure, ""
}
