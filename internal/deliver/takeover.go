// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// An object may be in a release that is about to go, and in the one that is being
// installed. It goes over from the one to the other: it is never deleted.

// takeOver makes an object of a leaving release ours to apply.
func (r *application) takeOver(ctx context.Context, live *metav1.PartialObjectMetadata, key record.ObjectKey) error {
	from := object.OwnerOf(&live.ObjectMeta)
	if from != r.release {
		if live.DeletionTimestamp != nil {
			return object.Postpone(key, fmt.Sprintf("it was deleted with add-on %s, and isn't gone yet", from))
		}
		if err := r.markTransferred(ctx, from); err != nil {
			return err
		}
	}
	return r.applier.TakeFields(ctx, live, object.ManagersAmong(&live.ObjectMeta, r.want.Leaving)...)
}

// markTransferred notes in the newest record of a release that something of it has another
// owner now. Should the release be wanted again, it isn't as it was installed: its objects are
// looked at and applied again. The transfer is noted first, as a crash may follow.
func (r *application) markTransferred(ctx context.Context, from Release) error {
	r.noting.Lock()
	defer r.noting.Unlock()
	if r.transferred[from] {
		return nil
	}
	store := r.d.storeOf(r.t, from)
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
	r.transferred[from] = true
	return nil
}
