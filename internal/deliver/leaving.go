// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/render/generated"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// heritage is what the record of a release has for a new revision: the objects that its chart may look up, and the
// values that charts generated for them.
type heritage struct {
	release record.Release
	objects []record.Entry
	values  job.Generated
	owned   int // how many of the objects that others have, too, are the release's in the cluster
}

// heritageOf returns what releases have that may go over to this one.
func (r revisionMaker) heritageOf(ctx context.Context, releases []Release) (all []*heritage, err error) {
	for _, from := range releases {
		rec, err := r.d.storeOf(r.t, from).Newest(ctx)
		if err != nil {
			return nil, fmt.Errorf("add-on %s, which may leave objects to this one: %w", from, err)
		}
		if rec != nil && rec.State != nil {
			all = append(all, &heritage{release: from, objects: rec.State.Inventory, values: rec.State.Generated})
		}
	}
	return all, nil
}

// inheritOthers returns the generated values that a revision continues with, unless some are given. It returns the objects
// that its chart may look up, too: its own, and those of releases that leave.
func (r revisionMaker) inheritOthers(ctx context.Context, given job.Generated, own *heritage) (job.Generated, []record.Entry, error) {
	left, err := r.heritageOf(ctx, r.want.Leaving)
	if err != nil {
		return nil, nil, err
	}
	if given == nil {
		kept, err := r.heritageOf(ctx, r.want.Kept)
		if err != nil {
			return nil, nil, err
		}
		if given, err = r.joinValues(ctx, append(slices.Concat(kept, left), own)); err != nil {
			return nil, nil, err
		}
	}
	found := own.objects
	for _, one := range left {
		found = record.Union(one.objects, found)
	}
	return given, found, nil
}

// joinValues returns the generated values of all. A value is found again by the object that it is in, so an add-on
// that is renamed, split or joined keeps its passwords. Records may disagree about a value, where a previous owner of
// an object has its record still. Then the release counts that has the objects in the cluster.
func (r revisionMaker) joinValues(ctx context.Context, all []*heritage) (job.Generated, error) {
	var sources []job.Generated
	for i, one := range all {
		for _, other := range all[:i] {
			if generated.Disagree(one.values, other.values) {
				if err := r.countOwned(ctx, one, other); err != nil {
					return nil, err
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *heritage) int { return cmp.Compare(a.owned, b.owned) })
	for _, one := range all {
		if len(one.values) > 0 {
			sources = append(sources, one.values)
		}
	}
	if len(sources) == 0 {
		return nil, nil
	}
	return generated.Join(sources...), nil
}

// knowsOthers reports whether a release that leaves its objects to this one has other values for them than the newest
// revision, which began before that was known.
func (r revisionMaker) knowsOthers(ctx context.Context) (bool, error) {
	left, err := r.heritageOf(ctx, r.want.Leaving)
	if err != nil || len(left) == 0 {
		return false, err
	}
	rec, err := r.load(ctx, r.records[0])
	if err != nil || rec.State == nil {
		return false, err
	}
	own := &heritage{release: r.release, objects: rec.State.Inventory, values: rec.State.Generated}
	values, err := r.joinValues(ctx, append(left, own))
	return err == nil && generated.Disagree(own.values, values), err
}

// countOwned counts the objects of two releases for the one that has them in the cluster.
func (r revisionMaker) countOwned(ctx context.Context, a, b *heritage) error {
	for _, e := range a.objects {
		if !slices.ContainsFunc(b.objects, func(other record.Entry) bool { return other.Key() == e.Key() }) {
			continue
		}
		m, err := r.scope.Metadata(ctx, r.t.Client, e)
		if object.IsGone(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.Key(), err)
		}
		for _, one := range []*heritage{a, b} {
			if object.OwnerOf(&m.ObjectMeta) == one.release && object.ManagedBy(&m.ObjectMeta, object.FieldManager(one.release)) {
				one.owned++
			}
		}
	}
	return nil
}

// isLeft reports whether an object is of a release that leaves, as its field manager shows.
func (r revisionMaker) isLeft(m *metav1.ObjectMeta) bool {
	owner := object.OwnerOf(m)
	return r.want != nil && slices.Contains(r.want.Leaving, owner) && object.ManagedBy(m, object.FieldManager(owner))
}
