// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"maps"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// mayTakeOver says whether a wanted add-on may take objects over yet from one that is
// leaving: one that isn't installed, for whatever reason, and an upgrade under way. An
// upgrade that failed holds nothing up: it may do so for weeks.
func (p *pass) mayTakeOver(a *addon, status *addonsv1.AddonStatus) bool {
	record := p.installed[a.release()]
	switch {
	case status.Phase == addonsv1.AddonReady && status.Reason != ReasonRetrying:
		return false
	case status.Reason == ReasonReleaseTaken:
		return false // another one has the release, and counts itself
	case status.Phase == addonsv1.AddonFailed && p.applied.Has(a.release()):
		return false
	case status.Phase == addonsv1.AddonFailed && record.Installed && !record.GivenAway():
		return false
	}
	return true
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
