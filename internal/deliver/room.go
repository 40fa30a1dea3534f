// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/shares"
)

const (
	// maxWorkedOn bounds what all calls have of large add-ons at once, in bytes, as [session.size] estimates it.
	maxWorkedOn = 48 << 20
	// maxUnclaimed is how much an add-on may have without a claim, in bytes.
	maxUnclaimed = 2 << 20
	// maxTurn is how long a large add-on is applied while others wait for its room.
	maxTurn = 20 * time.Second
	// maxDecoding is how many records are decoded at once.
	maxDecoding = 2
)

// errOutgrown says that a call has more of an add-on than it has claimed.
var errOutgrown = errors.New("more room is needed")

// within calls work for an add-on. A large one waits for its room first: many of them, on clusters that are slow to
// apply them, would take the manager's memory. How large it is turns out when it is rendered or read. What was rendered
// or read without room is forgotten, and work is called again.
func (d *Deliverer) within(ctx context.Context, t Target, release Release, want *Desired, proof string, work func(*run) error) error {
	for {
		r := d.run(t, release, want, proof)
		err := r.claim(ctx)
		if err == nil {
			err = work(r)
		}
		r.end(err)
		proof = r.proof // of a record that was written meanwhile
		if !errors.Is(err, errOutgrown) {
			if err != nil {
				return fmt.Errorf("add-on %s: %w", release, err)
			}
			return nil
		}
	}
}

// claim waits for the room that the add-on needs, as far as that is known.
func (r *run) claim(ctx context.Context) error {
	if r.s.needs <= maxUnclaimed {
		return nil
	}
	r.room, r.claimed = r.d.room.Claim(shares.TenantOf(ctx), int64(r.s.needs)), r.s.needs
	select {
	case <-r.room.Granted():
		r.roomSince = r.now()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fits returns errOutgrown if so many bytes need a claim, or a larger one.
func (r *run) fits(bytes int) error {
	if bytes <= max(r.claimed, maxUnclaimed) {
		return nil
	}
	r.s.needs = bytes + bytes/4 // what is found out later is a little more
	return errOutgrown
}

// turnIsOver reports whether others have waited long enough for the room that the add-on has.
func (r *run) turnIsOver() bool {
	return r.room != nil && r.now().Sub(r.roomSince) > maxTurn && r.d.room.Wanted()
}

// end leaves the session to the next call, and the room to others.
func (r *run) end(err error) {
	defer r.s.mu.Unlock()
	r.s.hookRuns = r.rec != nil && r.rec.State != nil && slices.ContainsFunc(r.rec.State.Hooks, func(h record.HookRun) bool {
		return h.Phase == helmrelease.HookPhaseRunning
	})
	if errors.Is(err, errOutgrown) {
		r.s.drop()
	}
	if r.d.isCurrent(r.t, r.release, r.s) {
		r.d.kept.note(r.s)
	}
	if r.room != nil {
		r.room.Release()
	}
}

// weightOf estimates how many bytes of memory objects take.
func weightOf(objects ...*unstructured.Unstructured) (bytes int) {
	for _, o := range objects {
		bytes += weightOfValue(o.Object)
	}
	return bytes
}

func weightOfValue(value any) int {
	bytes := 16
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			bytes += 32 + len(key) + weightOfValue(field)
		}
	case []any:
		for _, item := range value {
			bytes += weightOfValue(item)
		}
	case string:
		bytes += len(value)
	}
	return bytes
}
