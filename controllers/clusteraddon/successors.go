// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// mayBringKinds reports whether a change of an add-on may bring API kinds to the cluster, or take
// some away. The kinds of its objects tell. An operator may bring others, so dependents count, too.
func (q rendering) mayBringKinds(a *addon, before, after string) bool {
	for kind := range strings.SplitSeq(before+","+after, ",") {
		if strings.HasSuffix(kind, "/CustomResourceDefinition") || strings.HasSuffix(kind, "/APIService") {
			return true
		}
	}
	own := stack.Qualified(a.stack, a.Name)
	return slices.ContainsFunc(q.wanted, func(other addon) bool {
		return slices.ContainsFunc(other.DependsOn, func(d string) bool { return stack.Qualified(other.stack, d) == own })
	})
}

// awaitedStack returns a stack that may want objects of a leaving release, but of which nobody knows yet what it wants.
// It is waited for as long as an add-on's progress deadline is by default, as it may be another team's and never come.
// The time that is left is 0 if nothing is waited for.
func (q removal) awaitedStack(leaving deliver.Summary) (name string, left time.Duration) {
	name, isAwaited := firstIn(q.unresolved, decide.StackState.MayTakeOver)
	if !isAwaited || isRemoving(leaving) {
		return "", 0
	}
	return name, max(0, q.memory.of(leaving.Release).leavesSince(q.now).Add(addonsv1.DefaultProgressDeadlineSeconds*time.Second).Sub(q.now))
}

func (q rendering) contentsOfEach(ctx context.Context, successors []*addon) []successor {
	all := make([]successor, 0, len(successors))
	for _, a := range successors {
		contents, known := q.contentsOf(ctx, a)
		all = append(all, successor{a, contents, known})
	}
	return all
}

// successorsOf names the add-ons that are to have an object of a leaving one. Where their objects
// aren't known, it names those of the same stack, and those that aren't installed. It names these for no longer than
// their progress deadline, as another team's add-on may never come. It also returns when that is over, 0 for no time.
func (q rendering) successorsOf(ctx context.Context, leaving deliver.Summary, successors []successor) (names []string, retryAfter time.Duration) {
	if len(successors) == 0 {
		return nil, 0
	}
	objects, listed, err := q.Deliverer.Holds(ctx, q.workload.target(), leaving.Release)
	if err != nil {
		listed = false // whoever removes it will hear of it
	}
	since := q.memory.of(leaving.Release).leavesSince(q.now)
	for _, a := range successors {
		shares := a.stack == leaving.Stack
		switch left := since.Add(progressDeadline(a.addon)).Sub(q.now); {
		case a.known && listed:
			shares = a.contents.HasAny(objects...)
		case !shares && !q.installed[a.release()].Installed && left > 0:
			shares, retryAfter = true, retry.Sooner(retryAfter, left)
		}
		if shares {
			names = append(names, fmt.Sprintf("%s of AddonStack %s", a.Name, a.stack))
		}
	}
	return names, retryAfter
}
