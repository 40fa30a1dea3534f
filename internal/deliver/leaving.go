// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// inheritLeaving returns what the releases have that may go over to this one: the objects that its chart may look
// up, and the values that their charts generated. A value is found again by the object that it is in, so an add-on
// that is renamed, split or joined keeps its passwords.
func (r revisionMaker) inheritLeaving(ctx context.Context) (entries []record.Entry, generated map[string]string, err error) {
	generated = map[string]string{}
	for _, from := range r.want.Leaving {
		rec, err := r.d.storeOf(r.t, from).Newest(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("add-on %s, which may leave objects to this one: %w", from, err)
		}
		if rec == nil || rec.State == nil {
			continue
		}
		entries = append(entries, rec.State.Inventory...)
		maps.Copy(generated, rec.State.Generated)
	}
	return entries, generated, nil
}

// isLeft reports whether an object is of a release that goes, as its field manager shows.
func (r revisionMaker) isLeft(m *metav1.ObjectMeta) bool {
	owner := object.OwnerOf(m)
	return r.want != nil && slices.Contains(r.want.Leaving, owner) && object.ManagedBy(m, object.FieldManager(owner))
}
