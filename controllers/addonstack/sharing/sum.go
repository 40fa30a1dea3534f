// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
)

// Sum computes the status of a shared stack from the entries of its instances, at least
// one. Until all of them have seen the newest generation, the stack isn't Ready.
func Sum(s *addonsv1.AddonStack) {
	instances := s.Status.Instances
	observed := instances[0].ObservedGeneration
	var current []addonsv1.StackInstance
	var outdated []string
	for _, instance := range instances {
		observed = min(observed, instance.ObservedGeneration)
		if instance.ObservedGeneration == s.Generation {
			current = append(current, instance)
		} else {
			outdated = append(outdated, instance.WatchFilter)
		}
	}
	if len(current) == 0 {
		current = instances // the last one that was up to date has left
	}
	sum := &addonsv1.AddonStack{Status: *s.Status.DeepCopy()}
	sum.Generation, sum.Status.ObservedGeneration = observed, observed // conditions are about it, too
	if at := slices.IndexFunc(current, func(i addonsv1.StackInstance) bool { return i.LatestRevision != "" }); at >= 0 {
		sum.Status.LatestRevision = current[at].LatestRevision
	}
	for _, kind := range []string{addonsv1.PausedCondition, addonsv1.ValidCondition, addonsv1.SourcesReadyCondition, addonsv1.RolledOutCondition} {
		if c := worst(kind, current); c != nil {
			conditions.Set(sum, *c)
		} else if kind == addonsv1.SourcesReadyCondition || kind == addonsv1.RolledOutCondition {
			conditions.Delete(sum, kind)
		}
	}
	if counts := totals(instances, s.Generation); counts != nil {
		sum.Status.Clusters = counts
		conditions.Set(sum, ClustersReady(counts, instances, outdated))
	}
	sum.Status.Rollout = sharedRollout(s.Status.Rollout, instances, conditions.GetReason(sum, addonsv1.RolledOutCondition))
	report.Summarize(sum)
	s.Status = sum.Status
}

// totals adds up the clusters, nil if there are no counts. Ready ones count by the newest spec only.
func totals(instances []addonsv1.StackInstance, generation int64) *addonsv1.ClusterCounts {
	sum, counted := addonsv1.ClusterCounts{}, false
	for _, instance := range instances {
		counts := instance.Clusters
		if counts == nil {
			continue
		}
		counted = true
		sum.Total += counts.Total
		sum.Failed += counts.Failed
		sum.Waiting += counts.Waiting
		sum.Updated, sum.Unstarted = plus(sum.Updated, counts.Updated), plus(sum.Unstarted, counts.Unstarted)
		if instance.ObservedGeneration == generation {
			sum.Ready += counts.Ready
		}
	}
	if !counted {
		return nil
	}
	return &sum
}

// plus returns the sum of two numbers that may be missing; nil if both are.
func plus(a, b *int32) *int32 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return ptr.To(*a + *b)
}

// sharedRollout returns status.rollout of all instances together, which is as far as the last one of them; nil without a
// rollout. The completed revision is the same for all. A phase is the reason of RolledOut.
func sharedRollout(own *addonsv1.RolloutStatus, instances []addonsv1.StackInstance, phase string) *addonsv1.RolloutStatus {
	var sum *addonsv1.RolloutStatus
	for _, instance := range instances {
		switch p := instance.Rollout; {
		case p == nil:
		case sum == nil:
			sum = &addonsv1.RolloutStatus{Revision: p.Revision, Phase: addonsv1.RolloutPhase(phase), WavesDone: p.WavesDone}
		default:
			sum.WavesDone = min(sum.WavesDone, p.WavesDone)
		}
	}
	if sum != nil && own != nil {
		sum.Completed = own.Completed
	}
	return sum
}

// worst returns the worst condition. If instances disagree, the message names the one that it is of.
func worst(kind string, instances []addonsv1.StackInstance) *metav1.Condition {
	var found *metav1.Condition
	by, differ := "", false
	for _, instance := range instances {
		c := meta.FindStatusCondition(instance.Conditions, kind)
		if c == nil {
			continue
		}
		differ = differ || found != nil && found.Status != c.Status
		if found == nil || report.Severity(c) > report.Severity(found) {
			found, by = c, instance.WatchFilter
		}
	}
	if found == nil {
		return nil
	}
	c := report.Condition(kind, found.Status, found.Reason, found.Message)
	if differ && c.Message != "" {
		c.Message = fmt.Sprintf("Instance %s: %s", by, c.Message)
	}
	return &c
}

// ClustersReady makes the ClustersReady condition of all instances together.
func ClustersReady(counts *addonsv1.ClusterCounts, instances []addonsv1.StackInstance, outdated []string) metav1.Condition {
	var why []string
	for _, reason := range []string{addonsv1.TooManyStacksReason, addonsv1.ClustersFailedReason, addonsv1.ClustersProgressingReason} {
		for _, instance := range instances {
			if c := meta.FindStatusCondition(instance.Conditions, addonsv1.ClustersReadyCondition); c != nil && c.Reason == reason {
				why = append(why, instance.WatchFilter+": "+c.Message)
			}
		}
	}
	c := report.ClustersReady(counts, why)
	if len(outdated) == 0 {
		return c
	}
	if c.Status == metav1.ConditionTrue {
		c = report.Condition(c.Type, metav1.ConditionFalse, addonsv1.ClustersProgressingReason,
			fmt.Sprintf("%d of %d clusters are ready", counts.Ready, counts.Total))
	}
	c.Message += fmt.Sprintf("; no instance with --watch-filter=%s has seen the newest spec yet", strings.Join(outdated, ", "))
	return c
}
