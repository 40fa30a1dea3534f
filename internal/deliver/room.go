// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/shares"
)

const (
	// maxWorkedOn bounds what all calls have of large add-ons at once, in bytes, as [contents.size] estimates it.
	maxWorkedOn = 48 << 20
	// maxUnclaimed is how much an add-on may have without a claim, in bytes.
	maxUnclaimed = 2 << 20
	// maxTurn is how long a large add-on is applied while others wait for its room.
	maxTurn = 20 * time.Second
	// maxDecoding is how many records are decoded at once.
	maxDecoding = 2
)

// maxKept bounds the contents that are kept between calls, in bytes, as [contents.size] estimates them.
const maxKept = 32 << 20

// size returns about how many bytes the objects and records take.
func (c *contents) size() int64 { return int64(c.store.Size() + 2*c.weight) }

// errOutgrown says that a call has more of an add-on than it has claimed.
var errOutgrown = errors.New("more room is needed")

// place is an add-on's in the line for room.
type place struct {
	*shares.Share
	bytes int
	taken atomic.Bool // by the call that uses the room, or by the time
}

// claim takes the room that the add-on needs, as far as that is known. While there is none, a delivery stops, and is
// notified of its turn. Removals and repairs, which are short, wait.
func (r *call) claim(ctx context.Context) error {
	if r.s.needs <= maxUnclaimed {
		return nil
	}
	if r.s.place == nil || r.s.place.taken.Load() {
		r.s.place = &place{Share: r.d.room.Join(budget.TenantOf(ctx), int64(r.s.needs)), bytes: r.s.needs}
		go r.d.call(r.t, r.s.place)
	}
	if r.want != nil {
		select {
		case <-r.s.place.Granted():
		default:
			return r.awaitTurn(0)
		}
	}
	select {
	case <-r.s.place.Granted():
	case <-ctx.Done():
		return ctx.Err()
	}
	if !r.s.place.taken.CompareAndSwap(false, true) {
		return r.claim(ctx) // it came too late
	}
	r.room, r.claimed, r.roomSince = r.s.place.Share, r.s.place.bytes, r.now()
	return nil
}

// call notifies of a turn, and gives it to others if nobody takes it, or the connection ends before.
func (d *Deliverer) call(t Target, p *place) {
	select {
	case <-p.Granted():
		d.options.Notify(t.Name)
		select {
		case <-d.options.Clock.After(maxTurn):
		case <-t.Context.Done():
		}
	case <-t.Context.Done():
	}
	if p.taken.CompareAndSwap(false, true) {
		p.Release()
	}
}

// awaitTurn stops, and says how far the add-on is.
func (r *call) awaitTurn(after time.Duration) error {
	if r.rec == nil {
		r.records = slices.Clone(r.s.records)
	}
	message := "Other large add-ons have their turn"
	if len(r.records) > 0 && len(r.s.applied) > 0 {
		message = fmt.Sprintf("%d of %d objects were applied. %s", len(r.s.applied), r.records[0].Objects, message)
	}
	return r.wait(ReasonWaitingForTurn, message, after)
}

// fits returns errOutgrown if so many bytes need a claim, or a larger one.
func (r *call) fits(bytes int) error {
	if bytes <= max(r.claimed, maxUnclaimed) {
		return nil
	}
	r.s.needs = bytes + bytes/4 // what is found out later is a little more
	return errOutgrown
}
