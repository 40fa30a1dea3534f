// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// mayTakeOver says whether a wanted add-on may take objects over yet from one that is
// leaving. What refuses an object of it may be that the other one has it still: then
// that isn't waited for.
func mayTakeOver(one addonResult) bool {
	phase, reason := one.status.Phase, one.status.Reason
	switch {
	case phase == addonsv1.AddonReady && reason != reasons.Retrying:
		return false
	case reason == reasons.ReleaseTaken:
		return false // another one has the release, and counts itself
	case phase != addonsv1.AddonFailed:
		return true
	}
	return !one.applied && reason != deliver.ReasonImmutableField && reason != deliver.ReasonObjectRejected
}

// successor is an add-on that may take objects over, with what it is to have.
type successor struct {
	*addon
	contents sets.Set[deliver.ObjectKey]
	known    bool // else its contents can't be known now
}

func (q *request) contentsOfEach(ctx context.Context, successors []*addon) []successor {
	all := make([]successor, 0, len(successors))
	for _, a := range successors {
		contents, known := q.contentsOf(ctx, a)
		all = append(all, successor{a, contents, known})
	}
	return all
}

// successorsOf names those that are to have an object of a leaving add-on. Where that
// can't be known it is assumed of those that aren't installed, and of those of the same
// stack.
func (q *request) successorsOf(ctx context.Context, leaving deliver.Summary, successors []successor) []string {
	if len(successors) == 0 {
		return nil
	}
	objects, listed, err := q.Deliverer.Holds(ctx, q.workload.target(), leaving.Release)
	if err != nil {
		listed = false // whoever removes it will hear of it
	}
	var names []string
	for _, a := range successors {
		shares := a.stack == leaving.Stack || !q.installed[a.release()].Installed
		if a.known && listed {
			shares = a.contents.HasAny(objects...)
		}
		if shares {
			names = append(names, fmt.Sprintf("%s of AddonStack %s", a.Name, a.stack))
		}
	}
	return names
}

// leavingReleases are those whose objects wanted add-ons may take over.
func (q *request) leavingReleases() []deliver.Release {
	releases := make([]deliver.Release, 0, len(q.leaving))
	for _, record := range q.leaving {
		releases = append(releases, record.Release)
	}
	return releases
}
