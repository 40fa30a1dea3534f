// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// race measures how long each cluster takes until it runs what is wanted, as an observer of the API sees it.
type race struct {
	started time.Time
	wanted  []wantedAddon
	runners []*runner
}

// wantedAddon is an add-on at the version of the chart that the AddonStack names.
type wantedAddon struct{ name, version string }

// runner is a cluster on its way.
type runner struct {
	cluster string
	seen    *addonsv1.ClusterAddon // nil until there is one
	arrived time.Duration          // 0 while it is on its way
}

func newRace(wanted []wantedAddon, members []*member) *race {
	r := &race{started: time.Now(), wanted: wanted}
	for _, m := range members {
		r.runners = append(r.runners, &runner{cluster: m.name})
	}
	return r
}

// observe takes in the ClusterAddons, and returns whether all clusters have arrived.
func (r *race) observe(seen []addonsv1.ClusterAddon) bool {
	elapsed, all := time.Since(r.started), true
	for _, one := range r.runners {
		i := slices.IndexFunc(seen, func(ca addonsv1.ClusterAddon) bool { return ca.Spec.ClusterName == one.cluster })
		if i >= 0 {
			one.seen = &seen[i]
		}
		switch {
		case !one.complete(r.wanted):
			one.arrived, all = 0, false
		case one.arrived == 0:
			one.arrived = elapsed
		}
	}
	return all
}

// complete tells whether the cluster is Ready with each add-on at its version. A status about an older spec doesn't count.
func (o *runner) complete(wanted []wantedAddon) bool {
	if o.seen == nil || o.seen.Status.ObservedGeneration != o.seen.Generation ||
		!meta.IsStatusConditionTrue(o.seen.Status.Conditions, addonsv1.ReadyCondition) {
		return false
	}
	return !slices.ContainsFunc(wanted, func(w wantedAddon) bool {
		status := o.addon(w.name)
		return status == nil || status.Phase != addonsv1.AddonReady || status.Version != w.version
	})
}

// started tells whether Chandler has said anything of the cluster's add-ons.
func (o *runner) started() bool { return o.seen != nil && len(o.seen.Status.Addons) > 0 }

func (o *runner) addon(name string) *addonsv1.AddonStatus {
	if o.seen == nil {
		return nil
	}
	for i := range o.seen.Status.Addons {
		if o.seen.Status.Addons[i].Name == name {
			return &o.seen.Status.Addons[i]
		}
	}
	return nil
}

// elapsed is the time until the cluster arrived, or until now.
func (r *race) elapsed(o *runner) time.Duration {
	if o.arrived > 0 {
		return o.arrived
	}
	return time.Since(r.started)
}

// first and last are when the first and the last cluster arrived.
func (r *race) first() time.Duration { return slices.Min(r.arrivals()) }
func (r *race) last() time.Duration  { return slices.Max(r.arrivals()) }

func (r *race) arrivals() []time.Duration {
	var all []time.Duration
	for _, one := range r.runners {
		all = append(all, one.arrived)
	}
	return all
}

// missing says what hasn't arrived, and why, a line for each.
func (r *race) missing() string {
	var lines []string
	for _, one := range r.runners {
		if one.arrived > 0 {
			continue
		}
		lines = append(lines, one.cluster+": "+one.standing())
		for _, w := range r.wanted {
			if status := one.addon(w.name); status != nil && (status.Phase != addonsv1.AddonReady || status.Version != w.version) {
				lines = append(lines, fmt.Sprintf("  %s %s, wanted %s: %s", w.name, describe(status), w.version, explain(status)))
			}
		}
	}
	return strings.Join(lines, "\n")
}

func (o *runner) standing() string {
	if o.seen == nil {
		return "has no ClusterAddon"
	}
	ready := meta.FindStatusCondition(o.seen.Status.Conditions, addonsv1.ReadyCondition)
	if ready == nil {
		return "its ClusterAddon has no condition " + addonsv1.ReadyCondition
	}
	return fmt.Sprintf("Ready is %s, %s", ready.Status, ready.Reason)
}

// describe is an add-on's phase and version, short.
func describe(status *addonsv1.AddonStatus) string {
	return strings.TrimSpace(string(status.Phase) + " " + status.Version)
}

// explain is why an add-on is in its phase, in one line.
func explain(status *addonsv1.AddonStatus) string {
	if status.Message == "" {
		return status.Reason
	}
	return status.Reason + ": " + strings.Join(strings.Fields(status.Message), " ")
}
