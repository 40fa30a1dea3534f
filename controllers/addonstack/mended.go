// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"strconv"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// mended remembers of each stack what somebody said last who edits the spec, or wants a
// look now.
type mended struct{ said sync.Map } // client.ObjectKey to a string

// says whether that is another word than before. The first is none.
func (m *mended) says(s *addonsv1.AddonStack) bool {
	now := strconv.FormatInt(s.Generation, 10) + " " + s.Annotations[addonsv1.LookNowAnnotation]
	before, known := m.said.Swap(client.ObjectKeyFromObject(s), now)
	return known && before != now
}

func (m *mended) forget(key client.ObjectKey) { m.said.Delete(key) }

// reconsider has the stack's sources asked at once, for itself and for its clusters, whether
// what was refused of them is published anew.
func (r *Reconciler) reconsider(ctx context.Context, s *addonsv1.AddonStack) {
	if !r.mended.says(s) {
		return
	}
	if s.Spec.Source != nil {
		r.Sources.Reconsider(ctx, reference.BundleOf(s.Namespace, s.Spec.Source))
	}
	for i := range s.Spec.Addons {
		r.Sources.Reconsider(ctx, reference.AddonOf(s.Namespace, &s.Spec.Addons[i], nil))
	}
}
