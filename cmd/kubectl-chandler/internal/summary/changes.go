// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// Change is a change of a stack, or the same change of an add-on on some clusters.
type Change struct {
	// Time is when it came last.
	Time      metav1.Time          `json:"time"`
	Namespace string               `json:"namespace"`
	Stack     string               `json:"stack"`
	Addon     string               `json:"addon,omitempty"`
	Cause     addonsv1.ChangeCause `json:"cause"`
	By        string               `json:"by,omitempty"`
	// From and To are versions of the chart, or of a stack the names of its revisions, which has Versions that changed.
	From     string   `json:"from,omitempty"`
	To       string   `json:"to,omitempty"`
	Versions string   `json:"versions,omitempty"`
	Clusters []string `json:"clusters,omitempty"`
}

// Text returns the change as people read it, without its time and its clusters.
func (c *Change) Text() string {
	because, by, versions := "", "", c.From
	if c.By != "" {
		by = " by " + c.By
	}
	if c.Addon == "" {
		return strings.TrimSuffix(fmt.Sprintf("%s: %s%s, now %s; %s", c.Stack, c.Cause, by, c.To, c.Versions), "; ")
	}
	switch {
	case versions == "":
		versions = c.To
	case c.To != "" && c.To != c.From:
		versions += " -> " + c.To
	}
	if because = reasons.Because(c.Cause); because != "" {
		because = ", " + because
	}
	return fmt.Sprintf("%s/%s %s: %s%s%s", c.Stack, c.Addon, versions, c.Cause, because, by)
}

// Changes are those of a fleet, the last ones first.
type Changes struct {
	Changes []Change `json:"changes"`
}

// ChangesOf returns the changes of stacks and clusters since a time, as far as their statuses have them.
func ChangesOf(f *observed.Fleet, since time.Time) *Changes {
	all := []Change{}
	for i := range f.Stacks {
		s := &f.Stacks[i]
		for _, c := range s.Status.History {
			all = append(all, Change{
				Time: c.Time, Namespace: s.Namespace, Stack: s.Name, Cause: c.Cause, By: c.By, From: c.From, To: c.To, Versions: c.Versions,
			})
		}
	}
	type key struct{ namespace, stack, addon, cause, by, from, to string }
	known := map[key]int{}
	for i := range f.Clusters {
		ca := &f.Clusters[i]
		for _, c := range ca.Status.History {
			is := key{ca.Namespace, c.Stack, c.Addon, string(c.Cause), c.By, c.From, c.To}
			at, found := known[is]
			if !found {
				at = len(all)
				known[is] = at
				all = append(all, Change{
					Time: c.Time, Namespace: ca.Namespace, Stack: c.Stack, Addon: c.Addon, Cause: c.Cause, By: c.By, From: c.From, To: c.To,
				})
			}
			one := &all[at]
			if one.Time.Before(&c.Time) {
				one.Time = c.Time
			}
			if !slices.Contains(one.Clusters, ca.Name) {
				one.Clusters = append(one.Clusters, ca.Name)
			}
		}
	}
	all = slices.DeleteFunc(all, func(c Change) bool { return c.Time.Time.Before(since) })
	slices.SortStableFunc(all, func(a, b Change) int { return cmp.Compare(b.Time.Unix(), a.Time.Unix()) })
	return &Changes{Changes: all}
}
