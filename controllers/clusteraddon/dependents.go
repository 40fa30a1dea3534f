// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// removable returns the records that no other one depends on, and for all others the name of one
// that does. Of add-ons that depend on each other, the first one goes.
func removable(records []deliver.Summary) (now []deliver.Summary, waiting map[deliver.Release]string) {
	waiting = map[deliver.Release]string{}
	for _, record := range records {
		if by := dependent(record, records); by != "" {
			waiting[record.Release] = by
		} else {
			now = append(now, record)
		}
	}
	if len(now) == 0 && len(records) > 0 {
		now = records[:1]
		delete(waiting, records[0].Release)
	}
	return now, waiting
}

// stayingDependent returns an installed add-on that stays and depends on the record's, as "stack/name": a wanted
// one, or one that is left as it is. It returns "" if there is none, or if the record's removal has begun.
func (q *request) stayingDependent(record deliver.Summary) string {
	if isRemoving(record) || q.absent[stack.Qualified(record.Stack, record.Name)] {
		return ""
	}
	for i := range q.kept {
		s := &q.kept[i]
		if other := q.installed[deliver.Release{Namespace: s.Namespace, Name: s.Name}]; q.isProven(other) && dependsOn(other.Stack, other.DependsOn, record) {
			return stack.Qualified(other.Stack, other.Name)
		}
	}
	for i := range q.wanted {
		a := &q.wanted[i]
		if _, installed := q.installed[a.release()]; installed && dependsOn(a.stack, a.DependsOn, record) {
			return stack.Qualified(a.stack, a.Name)
		}
	}
	return ""
}

// dependsOn reports whether an add-on with these dependencies depends on the record's.
func dependsOn(ofStack string, dependencies []string, record deliver.Summary) bool {
	return slices.ContainsFunc(dependencies, func(d string) bool {
		return stack.Qualified(ofStack, d) == stack.Qualified(record.Stack, record.Name)
	})
}

// dependent returns the first other record that depends on this one, "" if there is none.
func dependent(record deliver.Summary, records []deliver.Summary) string {
	for _, other := range records {
		if other.Release != record.Release && dependsOn(other.Stack, other.DependsOn, record) {
			return other.Name
		}
	}
	return ""
}

// mayBringKinds reports whether a change of an add-on may bring API kinds to the cluster, or take
// some away. The kinds of its objects tell. An operator may bring others, so dependents count, too.
func (q *request) mayBringKinds(a *addon, before, after string) bool {
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

// mayTakeOver reports whether a wanted add-on may still take objects over from one that is leaving.
// An add-on that is refused because the other one has the object isn't waited for, once each object was tried.
func mayTakeOver(one addonResult) bool {
	phase, reason := one.status.Phase, one.status.Reason
	switch {
	case isInstalled(phase) && reason != reasons.Retrying:
		return false
	case reason == reasons.ReleaseTaken:
		return false // another one has the release, and counts itself
	case phase != addonsv1.AddonFailed:
		return true
	}
	isInTheWay := reason == object.ReasonImmutableField || reason == object.ReasonObjectRejected
	return !one.applied && (!one.tried || !isInTheWay)
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

// successorsOf names the add-ons that are to have an object of a leaving one. Where their objects
// aren't known, it names those of the same stack, and those that aren't installed. It names these for no longer than
// their progress deadline, as another team's add-on may never come. It also returns when that is over, 0 for no time.
func (q *request) successorsOf(ctx context.Context, leaving deliver.Summary, successors []successor) (names []string, retryAfter time.Duration) {
	if len(successors) == 0 {
		return nil, 0
	}
	objects, listed, err := q.Deliverer.Holds(ctx, q.workload.target(), leaving.Release)
	if err != nil {
		listed = false // whoever removes it will hear of it
	}
	since, known := q.memory.leavingSince[leaving.Release]
	if !known {
		since = q.now
		q.memory.leavingSince[leaving.Release] = since
	}
	for _, a := range successors {
		shares := a.stack == leaving.Stack
		switch left := since.Add(progressDeadline(a.addon)).Sub(q.now); {
		case a.known && listed:
			shares = a.contents.HasAny(objects...)
		case !shares && !q.installed[a.release()].Installed && left > 0:
			shares, retryAfter = true, management.Sooner(retryAfter, left)
		}
		if shares {
			names = append(names, fmt.Sprintf("%s of AddonStack %s", a.Name, a.stack))
		}
	}
	return names, retryAfter
}

// leavingReleases returns those whose objects wanted add-ons may take over.
func (q *request) leavingReleases() []deliver.Release {
	releases := make([]deliver.Release, 0, len(q.leaving))
	for _, record := range q.leaving {
		releases = append(releases, record.Release)
	}
	return releases
}
