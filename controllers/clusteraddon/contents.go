// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cluster-chandler/chandler/internal/deliver"
)

// yields says whether a wanted add-on is about to lose an object that it has: then
// another one may take it over before that. What can't be known is no.
func (p *pass) yields(ctx context.Context, release deliver.Release, object deliver.ObjectKey) bool {
	i := slices.IndexFunc(p.have, func(a addon) bool { return a.release() == release && !a.behind })
	if i < 0 {
		return false
	}
	has := p.contentsOf(ctx, &p.have[i])
	return has.Len() > 0 && !has.Has(object)
}

// heirTo finds who is about to have an object that an add-on is about to lose.
func (p *pass) heirTo(release deliver.Release) func(context.Context, deliver.ObjectKey) (deliver.Release, bool) {
	return func(ctx context.Context, object deliver.ObjectKey) (deliver.Release, bool) {
		for _, a := range p.unsettled(ctx) {
			if a.release() != release && p.contentsOf(ctx, a).Has(object) {
				return a.release(), true
			}
		}
		return deliver.Release{}, false
	}
}

// unsettled are the add-ons that didn't have what they are to have when this pass began,
// as far as that can be known.
func (p *pass) unsettled(ctx context.Context) []*addon {
	if p.moving != nil {
		return *p.moving
	}
	p.moving = &[]*addon{}
	for i := range p.have {
		a := &p.have[i]
		if a.behind {
			continue
		}
		if _, settled, err := p.compare(ctx, a, p.installed[a.release()]); !settled && err == nil {
			*p.moving = append(*p.moving, a)
		}
	}
	return *p.moving
}

// contentsOf is what an add-on is to have; empty if that can't be known.
func (p *pass) contentsOf(ctx context.Context, a *addon) sets.Set[deliver.ObjectKey] {
	p.rendering.Lock() // objects are applied in parallel
	defer p.rendering.Unlock()
	has, known := p.contents[a.release()]
	if !known {
		has = p.keysOf(ctx, a)
		p.contents[a.release()] = has
	}
	return has
}

// keysOf renders an add-on for the sake of its objects' names.
func (p *pass) keysOf(ctx context.Context, a *addon) sets.Set[deliver.ObjectKey] {
	record := p.installed[a.release()]
	in, err := p.inputs(ctx, a, record)
	if err != nil {
		return nil // as its status says
	}
	want := p.desired(a, in)
	rendering, err := want.Render(ctx, deliver.RenderInput{Revision: record.Revision + 1, Upgrade: record.Installed})
	if err != nil {
		return nil
	}
	keys, err := p.Deliverer.Keys(p.workload.target(), a.release(), rendering)
	if err != nil {
		return nil
	}
	return sets.New(keys...)
}
