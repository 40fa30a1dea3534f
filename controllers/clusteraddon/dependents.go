// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// dependentsAmong returns for each record the name of another one that depends on it, and has to be removed first. If
// add-ons depend on each other, nothing has to before the first one.
func dependentsAmong(records []deliver.Summary) map[deliver.Release]string {
	waiting := map[deliver.Release]string{}
	for _, record := range records {
		if by := dependent(record, records); by != "" {
			waiting[record.Release] = by
		}
	}
	if len(records) > 0 && len(waiting) == len(records) {
		delete(waiting, records[0].Release)
	}
	return waiting
}

// stayingDependent returns an installed add-on that stays and depends on the record's, as "stack/name": a wanted
// one, or one that is left as it is. It returns "" if there is none, or if the record's removal has begun.
func (q removal) stayingDependent(record deliver.Summary) string {
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
