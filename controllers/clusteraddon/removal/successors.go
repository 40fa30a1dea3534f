// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/rendering"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// rememberedContents bounds the contents of add-ons that are remembered, in bytes.
const rememberedContents = 8 << 20

// sizeOf returns about how many bytes the contents of an add-on take.
func sizeOf(contents sets.Set[deliver.ObjectKey]) (bytes int64) {
	for key := range contents {
		bytes += int64(96 + len(key.Group) + len(key.Kind) + len(key.Namespace) + len(key.Name))
	}
	return bytes
}

// Contents know the objects of add-ons that aren't installed as wanted.
type Contents struct {
	Inputs    inputs.Reader
	Renderer  rendering.Renderer
	Deliverer *deliver.Deliverer
	Target    deliver.Target
	// Known are those of add-ons that were rendered before.
	Known *budget.Cache[string, sets.Set[deliver.ObjectKey]]
}

// NewContents returns a cache of the contents of add-ons, within a budget.
func NewContents(within *budget.Budget) *budget.Cache[string, sets.Set[deliver.ObjectKey]] {
	return budget.NewCache[string](within, rememberedContents, sizeOf)
}

// of returns the objects that an add-on is to have, nil if that isn't known now.
func (c Contents) of(ctx context.Context, a *wanted.Addon, record deliver.Summary) sets.Set[deliver.ObjectKey] {
	if a.Incompatible != "" {
		return nil // which version of the chart it will be isn't known
	}
	in, err := c.Inputs.Of(ctx, a, record)
	if err != nil {
		return nil // as its status says
	}
	name := c.Inputs.ClusterAddon.String() + " " + in.Digest(job.FactsUsed{})
	if has, known := c.Known.Get(name); known {
		return has
	}
	rendered, err := c.Renderer.Render(ctx, in, deliver.RenderInput{Revision: record.Revision + 1, Upgrade: record.Installed})
	if err != nil {
		return nil
	}
	keys, err := c.Deliverer.Keys(c.Target, a.Release(), rendered)
	if err != nil {
		return nil
	}
	has := sets.New(keys...)
	c.Known.Put(budget.TenantOf(ctx), name, has)
	return has
}

// successorsOf names the add-ons that are to have an object of a leaving one. Where their objects
// aren't known, it names those of the same stack, and those that aren't installed and may be what the leaving one was. It names
// these for no longer than their progress deadline, as another team's add-on may never come. It also returns when that is over, 0 for no time.
func (q Removal) successorsOf(ctx context.Context, leaving deliver.Summary, successors []successor) (names []string, retryAfter time.Duration) {
	if len(successors) == 0 {
		return nil, 0
	}
	objects, listed, err := q.Deliverer.Holds(ctx, q.Workload.Target(), leaving.Release)
	if err != nil {
		listed = false // whoever removes it will hear of it
	}
	since := q.Memory.Of(leaving.Release).LeavesSince(q.Now)
	for _, a := range successors {
		shares := a.Stack == leaving.Stack
		switch left := since.Add(a.Addon.ProgressDeadline()).Sub(q.Now); {
		case a.contents != nil && listed:
			shares = a.contents.HasAny(objects...)
		case !shares && !q.Installed[a.Release()].Installed && left > 0 && q.mayBe(a.Addon, leaving):
			shares, retryAfter = true, retry.Sooner(retryAfter, left)
		}
		if shares {
			names = append(names, fmt.Sprintf("%s of AddonStack %s", a.Name, a.Stack))
		}
	}
	return names, retryAfter
}

// mayBe reports whether an add-on whose objects aren't known may have some of a leaving one: it is called the same, is in the
// same namespace, or comes from where something is called as the chart.
func (q Removal) mayBe(a *wanted.Addon, leaving deliver.Summary) bool {
	return a.Name == leaving.Name || a.Release().Namespace == leaving.Namespace ||
		leaving.Chart != "" && strings.Contains(a.Reference(q.ClusterAddon.Namespace).Subject(), leaving.Chart)
}

// successor is an add-on that may take objects over, with what it is to have.
type successor struct {
	*wanted.Addon
	contents sets.Set[deliver.ObjectKey] // nil if they can't be known now
}
