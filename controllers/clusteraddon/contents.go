// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render"
)

// rememberedContents is how many add-ons' contents are remembered.
const rememberedContents = 256

// contentsOf are the objects that an add-on is to have. It is false if that can't be
// known now.
func (q *request) contentsOf(ctx context.Context, a *addon) (sets.Set[deliver.ObjectKey], bool) {
	record := q.installed[a.release()]
	in, err := q.inputs(ctx, a, record)
	if err != nil {
		return nil, false // as its status says
	}
	digest, err := in.digest(render.FactsUsed{})
	if err != nil {
		return nil, false
	}
	name := q.keyOf(q.ca.Name).String() + " " + digest
	if has, known := q.contents.Get(name); known {
		return has, true
	}
	want := q.desired(a, in)
	rendering, err := want.Render(ctx, deliver.RenderInput{Revision: record.Revision + 1, Upgrade: record.Installed})
	if err != nil {
		return nil, false
	}
	keys, err := q.Deliverer.Keys(q.workload.target(), a.release(), rendering)
	if err != nil {
		return nil, false
	}
	has := sets.New(keys...)
	q.contents.Put(name, has)
	return has, true
}
