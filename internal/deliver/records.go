// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"slices"
	"time"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// recordsStay is how long a session takes the records for those that it knows. Others rarely
// write them, and the API server refuses a write that is based on an older one.
const recordsStay = 10 * time.Second

// recall takes the records that the session knows, or lists them.
func (r *call) recall(ctx context.Context) error {
	if r.now().Sub(r.s.listedAt) < recordsStay {
		r.records, r.parts = slices.Clone(r.s.records), r.s.parts
		return nil
	}
	r.s.listedAt = r.now()
	return r.list(ctx)
}

// remember leaves the records to the session, if they are as they were written last.
func (r *call) remember(err error) {
	switch {
	case err == nil && r.rec == nil && len(r.records) == 0: // as while its source is asked
	case err == nil && r.rec != nil && len(r.records) > 0 && r.records[0].UID == r.rec.UID:
		r.records[0] = r.rec.Summary
	default:
		r.s.listedAt = time.Time{}
		return
	}
	r.s.records, r.s.parts = r.records, r.parts
}

func (r *call) list(ctx context.Context) error {
	var err error
	r.records, r.parts, err = r.s.store.List(ctx)
	return err
}

// load reads a record.
func (r *call) load(ctx context.Context, s Summary) (*record.Record, error) {
	rec, err := r.s.store.Load(ctx, s)
	if err != nil {
		return nil, err
	}
	r.hidden.learnRecord(rec)
	if rec.State != nil && rec.State.Adopted != nil {
		r.adopted = rec.State.Adopted
	}
	return rec, r.fits(int(r.s.size()))
}
