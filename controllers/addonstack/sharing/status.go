// SPDX-License-Identifier: Apache-2.0

// Package sharing makes the status of an AddonStack that several instances have a part in.
package sharing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/message"
)

// A stack with the watch label "shared" is meant for the Clusters of all filters
// of its namespace, so that several instances write its status. Each one writes
// its own entry of status.instances, and only when that has changed; in the same
// write it sums up all entries. So no instance ever answers a write of another
// one, also if the two are of different versions and would put it differently.

const (
	// MaxInstances is how many instances status.instances can hold (MaxItems).
	MaxInstances = 64
	// maxInstanceMessage is how much of a condition's message the entry of an instance has.
	maxInstanceMessage = 1024 // bytes
)

// IsShared reports whether instances beside the one with a watch filter have a part in the stack.
func IsShared(s *addonsv1.AddonStack, watchFilter string) bool {
	return watchFilter != "" && s.Labels[clusterv1.WatchLabel] == addonsv1.SharedWatchFilter
}

// Status reads and writes the part of a status that is about the clusters of this instance.
type Status struct {
	WatchFilter string
	Members     *member.Inventory
	// APIReader finds Clusters of other instances.
	APIReader client.Reader
	Statuses  *management.Statuses
	Events    report.Events
}

// ViewOf returns the stack with the status as this instance saw it last.
func (w Status) ViewOf(s *addonsv1.AddonStack) *addonsv1.AddonStack {
	view := s.DeepCopy()
	if !IsShared(s, w.WatchFilter) {
		view.Status.Instances = nil
		return view
	}
	view.Status = addonsv1.AddonStackStatus{LatestRevision: s.Status.LatestRevision, Following: view.Status.Following, History: view.Status.History, Conditions: view.Status.Conditions, Rollout: view.Status.Rollout, Instances: view.Status.Instances}
	conditions.Delete(view, addonsv1.ClustersReadyCondition) // others' clusters aren't this instance's
	// The rollout is as far as the last instance, and maybe to another revision than this one's.
	if all := view.Status.Rollout; all != nil {
		view.Status.Rollout = &addonsv1.RolloutStatus{Phase: all.Phase, Completed: all.Completed}
	}
	if own := instanceOf(s.Status.Instances, w.WatchFilter); own != nil {
		if view.Status.Rollout != nil && own.Rollout != nil {
			view.Status.Rollout.Revision, view.Status.Rollout.WavesDone = own.Rollout.Revision, own.Rollout.WavesDone
		}
		view.Status.ObservedGeneration, view.Status.LatestRevision = own.ObservedGeneration, own.LatestRevision
		view.Status.Clusters, view.Status.Conditions = own.Clusters.DeepCopy(), slices.Clone(own.Conditions)
	}
	return view
}

// Write writes what this instance sees into the stack's status, if it is new.
func (w Status) Write(ctx context.Context, s, view *addonsv1.AddonStack) error {
	if !IsShared(s, w.WatchFilter) {
		return w.Statuses.Patch(ctx, s, view)
	}
	view.Status.Sources, view.Status.Instances = nil, nil // others may see other ones: each has its own credentials
	own, err := w.entry(ctx, view)
	if err != nil {
		return err
	}
	known := instanceOf(s.Status.Instances, w.WatchFilter)
	if own == nil && known == nil {
		if len(s.Status.Instances) > 0 {
			return nil
		}
		return w.Statuses.Patch(ctx, s, view) // nobody has a Cluster here
	}
	followed := following.Merge(s, view)
	if equality.Semantic.DeepEqual(own, known) && equality.Semantic.DeepEqual(followed, s.Status.Following) {
		return nil
	}
	after := s.DeepCopy()
	after.Status.Following, after.Status.History, after.Status.Sources, after.Status.Rollout = followed, view.Status.History, nil, view.Status.Rollout
	after.Status.Instances = WithInstance(after.Status.Instances, w.WatchFilter, own)
	if MayMoveOthers(known, own) {
		if after.Status.Instances, err = w.withoutGone(ctx, s.Namespace, after.Status.Instances); err != nil {
			return err
		}
	}
	if len(after.Status.Instances) > MaxInstances {
		w.Events.Recorder.Eventf(s, nil, corev1.EventTypeWarning, "TooManyInstances", "Report",
			"status.instances can hold %d instances; the one with --watch-filter=%s is left out", MaxInstances, w.WatchFilter)
		return nil
	}
	if len(after.Status.Instances) == 0 {
		after.Status = view.Status
	} else {
		Sum(after)
	}
	return w.Statuses.Patch(ctx, s, after)
}

// entry returns this instance's entry in status.instances, nil without a cluster in the namespace.
func (w Status) entry(ctx context.Context, view *addonsv1.AddonStack) (*addonsv1.StackInstance, error) {
	clusters, err := w.Members.List(ctx, view.Namespace)
	if err != nil || len(clusters) == 0 {
		return nil, err
	}
	own := &addonsv1.StackInstance{
		WatchFilter:        w.WatchFilter,
		ObservedGeneration: view.Status.ObservedGeneration,
		LatestRevision:     view.Status.LatestRevision,
		Clusters:           view.Status.Clusters,
	}
	if is := view.Status.Rollout; is != nil && is.Revision != "" {
		own.Rollout = &addonsv1.RolloutProgress{Revision: is.Revision, WavesDone: is.WavesDone}
	}
	for _, c := range view.Status.Conditions {
		if c.Type != addonsv1.ReadyCondition { // it sums up the others
			c.Message = message.Shorten(c.Message, maxInstanceMessage)
			own.Conditions = append(own.Conditions, c)
		}
	}
	return own, nil
}

// withoutGone leaves out the instances of filters that no Cluster of the namespace has any
// more: they ended for good, or take themselves out. For each filter, it asks for the metadata of a
// single object.
func (w Status) withoutGone(ctx context.Context, namespace string, instances []addonsv1.StackInstance) ([]addonsv1.StackInstance, error) {
	var kept []addonsv1.StackInstance
	for _, instance := range instances {
		if instance.WatchFilter != w.WatchFilter {
			if stays, err := w.hasClusters(ctx, namespace, instance.WatchFilter); err != nil {
				return nil, err
			} else if !stays {
				continue
			}
		}
		kept = append(kept, instance)
	}
	return kept, nil
}

// hasClusters reports whether a filter has a Cluster or another cluster's ClusterAddon in the namespace.
func (w Status) hasClusters(ctx context.Context, namespace, watchFilter string) (bool, error) {
	others, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.DoesNotExist, nil) // ClusterAddons of Clusters have it
	if err != nil {
		return false, err
	}
	ofFilter := labels.SelectorFromSet(labels.Set{clusterv1.WatchLabel: watchFilter})
	for kind, selector := range map[schema.GroupVersionKind]labels.Selector{
		clusterv1.GroupVersion.WithKind("ClusterList"):     ofFilter,
		addonsv1.GroupVersion.WithKind("ClusterAddonList"): ofFilter.Add(*others),
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := w.APIReader.List(ctx, list, client.InNamespace(namespace), client.Limit(1), client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return false, fmt.Errorf("looking for %s with watch filter %s: %w", kind.Kind, watchFilter, err)
		}
		if len(list.Items) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// MayMoveOthers reports whether the spec or the Clusters changed: then other instances may have ended.
func MayMoveOthers(before, after *addonsv1.StackInstance) bool {
	if before == nil || after == nil || before.ObservedGeneration != after.ObservedGeneration {
		return true
	}
	was, is := before.Clusters, after.Clusters
	return (was == nil) != (is == nil) || was != nil && was.Total != is.Total
}

// instanceOf returns the entry of a filter, nil if there is none.
func instanceOf(instances []addonsv1.StackInstance, filter string) *addonsv1.StackInstance {
	for i := range instances {
		if instances[i].WatchFilter == filter {
			return &instances[i]
		}
	}
	return nil
}

// WithInstance replaces the entry of a filter, adds it in its place, or takes it out.
func WithInstance(instances []addonsv1.StackInstance, filter string, entry *addonsv1.StackInstance) []addonsv1.StackInstance {
	instances = slices.DeleteFunc(instances, func(i addonsv1.StackInstance) bool { return i.WatchFilter == filter })
	if entry == nil {
		return instances
	}
	instances = append(instances, *entry)
	slices.SortFunc(instances, func(a, b addonsv1.StackInstance) int { return strings.Compare(a.WatchFilter, b.WatchFilter) })
	return instances
}
