// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// compare finds out what was changed of an object, by a dry run, and notes it. It returns what
// is to be applied: the manifest without what rules leave to others, nil for nothing.
func (r *Repairer) compare(ctx context.Context, o *unstructured.Unstructured, live *metav1.PartialObjectMetadata, d *Difference) (*unstructured.Unstructured, error) {
	changes, applied, err := r.Changes(ctx, o, live)
	if apierrors.IsInvalid(err) && !r.Report {
		if d.displaced = drift.Replacements(o, live.ManagedFields, r.Scope.Manager()); len(d.displaced) > 0 {
			changes, err, applied = d.displaced[0].Changes, nil, o
		}
	}
	if errors.Is(err, apply.ErrAnother) {
		d.raced, d.Wait = true, retry.Moment
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if r.Values && d.displaced == nil {
		now, err := r.Get(ctx, applied)
		if err != nil {
			return nil, err
		}
		changes = append(changes, drift.Stale(now.Object, applied, r.Scope.Manager(), changes)...)
	}
	d.wanted = drift.FieldsOf(applied.GetManagedFields(), r.Scope.Manager())
	rules := r.Ignore.For(o)
	ignored, rest := rules.Split(o, changes)
	if r.Report {
		if rest, err = r.Differing(ctx, rest, applied); err != nil {
			return nil, err
		}
	}
	d.Changes, d.Managers = rest, drift.ManagersOf(rest, live.ManagedFields, r.Scope.Manager())
	d.whole = len(ignored) == 0
	if len(rest) == 0 && (!d.whole || d.wanted == d.Now) {
		d.Managers = nil
		return nil, nil
	}
	if len(rules) > 0 {
		o = drift.Without(o, ignored)
		o.SetResourceVersion(live.ResourceVersion) // else it might take back what somebody takes now
	}
	return o, nil
}
