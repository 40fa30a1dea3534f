// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"
	"maps"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// isArriving says whether a wanted add-on may take objects over yet from one that is
// leaving. What refuses an object of it may be that the other one has it still: then
// that isn't waited for.
func (p *pass) isArriving(a *addon, status *addonsv1.AddonStatus) bool {
	switch {
	case status.Phase == addonsv1.AddonReady && status.Reason != ReasonRetrying:
		return false
	case status.Reason == ReasonReleaseTaken:
		return false // another one has the release, and counts itself
	case status.Phase != addonsv1.AddonFailed:
		return true
	}
	return !p.applied.Has(a.release()) && status.Reason != deliver.ReasonImmutableField && status.Reason != deliver.ReasonObjectRejected
}

// successorsOf names the arriving add-ons that are to have an object of a leaving one.
// Where that can't be known it is assumed of those that aren't installed, and of those
// of the same stack.
func (p *pass) successorsOf(ctx context.Context, leaving deliver.Summary) []string {
	if len(p.arriving) == 0 {
		return nil
	}
	objects, told, err := p.Deliverer.Holds(ctx, p.workload.target(), leaving.Release)
	if err != nil {
		told = false // whoever removes it will hear of it
	}
	var names []string
	for _, a := range p.arriving {
		shares := a.stack == leaving.Stack || !p.installed[a.release()].Installed
		if has, known := p.contentsOf(ctx, a); known && told {
			shares = has.HasAny(objects...)
		}
		if shares {
			names = append(names, fmt.Sprintf("%s of AddonStack %s", a.Name, a.stack))
		}
	}
	return names
}

// leavingReleases are those whose objects wanted add-ons may take over.
func (p *pass) leavingReleases() []deliver.Release {
	releases := make([]deliver.Release, 0, len(p.leaving))
	for _, record := range p.leaving {
		releases = append(releases, record.Release)
	}
	return releases
}

// openQuestions are why stacks are undecided whose add-ons this cluster is to have, or has.
func (p *pass) openQuestions() []string {
	open := map[string]string{}
	for name, why := range p.undecided {
		has := slices.ContainsFunc(slices.Collect(maps.Values(p.installed)), func(s deliver.Summary) bool { return s.Stack == name })
		if has || p.awaited.Has(name) {
			open[name] = why
		}
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(open)) {
		texts = append(texts, open[name])
	}
	return texts
}
