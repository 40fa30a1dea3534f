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

// isArriving says whether a wanted add-on may take objects over yet from one that is
// leaving. What refuses an object of it may be that the other one has it still: then
// that isn't waited for.
func isArriving(status *addonsv1.AddonStatus, applied bool) bool {
	switch {
	case status.Phase == addonsv1.AddonReady && status.Reason != reasons.Retrying:
		return false
	case status.Reason == reasons.ReleaseTaken:
		return false // another one has the release, and counts itself
	case status.Phase != addonsv1.AddonFailed:
		return true
	}
	return !applied && status.Reason != deliver.ReasonImmutableField && status.Reason != deliver.ReasonObjectRejected
}

// arrival is an arriving add-on, with what it is to have.
type arrival struct {
	*addon
	contents sets.Set[deliver.ObjectKey]
	known    bool // else its contents can't be known now
}

// arrivals are the arriving add-ons, if anything is leaving.
func (p *pass) arrivals(ctx context.Context) []arrival {
	if len(p.leaving) == 0 {
		return nil
	}
	all := make([]arrival, 0, len(p.arriving))
	for _, a := range p.arriving {
		contents, known := p.contentsOf(ctx, a)
		all = append(all, arrival{a, contents, known})
	}
	return all
}

// successorsOf names those that are to have an object of a leaving add-on. Where that
// can't be known it is assumed of those that aren't installed, and of those of the same
// stack.
func (p *pass) successorsOf(ctx context.Context, leaving deliver.Summary, arrivals []arrival) []string {
	if len(arrivals) == 0 {
		return nil
	}
	objects, told, err := p.Deliverer.Holds(ctx, p.workload.target(), leaving.Release)
	if err != nil {
		told = false // whoever removes it will hear of it
	}
	var names []string
	for _, a := range arrivals {
		shares := a.stack == leaving.Stack || !p.installed[a.release()].Installed
		if a.known && told {
			shares = a.contents.HasAny(objects...)
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
