// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// confirmations remembers the confirmations of removals that are held now, until the cache shows them on a
// ClusterAddon.
//
// Key: the namespace, and a digest of the change.
// Bound: a minute.
// Lost with it: a change may get a second confirmation.
type confirmations struct {
	mu    sync.Mutex
	known *cache.Expiring // heldChange to string
}

// heldChange is a change that is held, and the namespace that it is in.
type heldChange struct{ namespace, digest string }

const confirmationSeenWithin = time.Minute

// of returns the confirmation of a change: the one that a ClusterAddon names, or a new one. So it is the same for all
// clusters that the change concerns now, and another one when the same change is made once more.
func (c *confirmations) of(change heldChange, held []addonsv1.ClusterAddon) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range held {
		for _, s := range held[i].Spec.Stacks {
			if s.HeldRemoval != nil && isOf(s.HeldRemoval.Confirmation, change) {
				return s.HeldRemoval.Confirmation
			}
		}
	}
	if known, ok := c.known.Get(change); ok {
		return known.(string)
	}
	made := change.digest + "-" + rand.String(5)
	c.known.Set(change, made, confirmationSeenWithin)
	return made
}

// spend forgets a confirmation that was given.
func (c *confirmations) spend(change heldChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.Delete(change)
}

// isOf reports whether a confirmation is of the change.
func isOf(confirmation string, change heldChange) bool {
	return strings.HasPrefix(confirmation, change.digest+"-")
}

// changeOf returns which change of a stack would take add-ons away, and its cause: the same for all clusters of the stack.
func changeOf(key client.ObjectKey, assigned string, target *candidate.Stack, wanted []addonsv1.StackRevision) (heldChange, addonsv1.RemovalCause) {
	cause, about := addonsv1.RemovalStackDeleted, assigned
	switch {
	case target == nil:
	case stack.IsAssigned(wanted, key.Name):
		cause, about = addonsv1.RemovalAddonsDropped, stack.AssignedRevision(wanted, key.Name)
	default:
		cause, about = addonsv1.RemovalNotSelected, target.Revision
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{string(cause), key.Name, about}, "/")))
	return heldChange{key.Namespace, hex.EncodeToString(sum[:4])}, cause
}

// confirmationsOf returns the confirmations that a ClusterAddon carries: its annotation has one, or several with commas.
func confirmationsOf(ca *addonsv1.ClusterAddon) sets.Set[string] {
	return rollout.Names(ca.Annotations[addonsv1.ConfirmRemovalAnnotation])
}
