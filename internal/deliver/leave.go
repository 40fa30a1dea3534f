// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// leaveAsDeployed reports whether an object stays as the deployed revision applied it, as nobody
// has changed it since. It is read, unless a watch shows it and it has no status to wait for. A CRD of crds/ is served
// since that revision.
func (r *application) leaveAsDeployed(ctx context.Context, o *unstructured.Unstructured) (left bool, _ error) {
	key := record.KeyOf(o)
	e, same := r.s.asDeployed[key]
	if !same {
		return false, nil
	}
	if r.want.Seen != nil && (e.CRD || readiness.HasNoStatus(o)) && len(r.checks.For(o)) == 0 {
		if seen, known := r.want.Seen(key); known && seen == e.Fields {
			ready := observe.Object{Status: observe.Status{Phase: observe.Current}}
			r.note(key, &applied{Object: ready, uid: e.UID, fields: e.Fields})
			return true, nil
		}
	}
	live, err := r.applier.Get(ctx, o)
	if err != nil {
		return false, nil //nolint:nilerr // applying it tells what is wrong
	}
	if live.GetUID() != e.UID || live.GetDeletionTimestamp() != nil || drift.FieldsOf(live.GetManagedFields(), r.scope.Manager()) != e.Fields {
		return false, nil
	}
	return true, r.noteApplied(o, live, false, 0)
}
