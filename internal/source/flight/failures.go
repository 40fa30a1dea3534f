// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"errors"
	"time"

	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/lru"
)

// failures say how the last flights ended that failed: while the next one is under way,
// that is still what is known.
type failures struct {
	clock  clock.PassiveClock
	byName *lru.Cache[string, failed]
}

// rememberedFailures is how many flights are known by how they failed.
const rememberedFailures = 4096

// failed is how a flight failed.
type failed struct {
	err         *failure.Error
	credentials string
	// until is how long it is told while the next one is under way: long enough for those
	// who try again when it says so.
	until time.Time
	// untaken is set until this time if there were some to wake: they didn't hear of it.
	untaken time.Time
}

func newFailures(clock clock.PassiveClock) *failures {
	return &failures{clock: clock, byName: lru.New[string](rememberedFailures, lru.One[failed])}
}

// note how a flight ended.
func (f *failures) note(landed *flight) {
	if landed.err == nil {
		f.byName.Remove(landed.Name)
		return
	}
	why, ok := errors.AsType[*failure.Error](landed.err)
	if !ok || why.Reason == failure.ArtifactPending {
		return
	}
	now := f.clock.Now()
	last := failed{err: why, credentials: landed.Credentials, until: now.Add(why.RetryAfter + 2*failure.MaxRetry)}
	if len(landed.waiting) > 0 {
		last.untaken = now.Add(failure.FirstRetry)
	}
	f.byName.Put(landed.Name, last)
}

// last is how the last flight failed, if that wasn't long ago.
func (f *failures) last(to Route) (failed, bool) {
	known, found := f.byName.Get(to.Name)
	return known, found && known.credentials == to.Credentials && f.clock.Now().Before(known.until)
}

// untaken is how the last flight failed, if that is new to those who were woken.
func (f *failures) untaken(to Route) (*failure.Error, bool) {
	known, found := f.last(to)
	return known.err, found && f.clock.Now().Before(known.untaken)
}
