// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Fleet is what was read, in the order of the API server: by namespace and name.
type Fleet struct {
	Instances []addonsv1.ProviderInstance
	Stacks    []addonsv1.AddonStack
	Clusters  []addonsv1.ClusterAddon
	// At is when it was read.
	At time.Time
	// InstancesHidden says that the user may not list ProviderInstances.
	InstancesHidden bool
}

// page is how many objects are read with one request: so a large fleet needs little memory beside what is kept of it.
const page = 100

// Read reads all three kinds in a namespace, or in all for "", and of AddonStacks those that the selector selects.
// ProviderInstances are read in all namespaces, as they work for others than their own.
func Read(ctx context.Context, c client.Reader, namespace string, selector labels.Selector) (*Fleet, error) {
	f, stacks := &Fleet{At: time.Now()}, &addonsv1.AddonStackList{}
	err := f.ReadInstances(ctx, c)
	if err == nil {
		err = pages(ctx, c, "AddonStacks", stacks, func() { f.Stacks = append(f.Stacks, stacks.Items...) },
			&client.ListOptions{Namespace: namespace, LabelSelector: selector})
	}
	if err == nil {
		err = f.ReadClusters(ctx, c, namespace)
	}
	return f, err
}

// ReadInstances reads ProviderInstances.
func (f *Fleet) ReadInstances(ctx context.Context, c client.Reader) error {
	instances := &addonsv1.ProviderInstanceList{}
	err := pages(ctx, c, "ProviderInstances", instances, func() {
		for i := range instances.Items {
			instances.Items[i].ManagedFields = nil
		}
		f.Instances = append(f.Instances, instances.Items...)
	})
	if f.InstancesHidden = apierrors.IsForbidden(err); f.InstancesHidden {
		return nil
	}
	return err
}

// ReadClusters reads ClusterAddons. Much of them is left out: most of a large fleet is well, and nobody asks further.
func (f *Fleet) ReadClusters(ctx context.Context, c client.Reader, namespace string) error {
	clusters := &addonsv1.ClusterAddonList{}
	return pages(ctx, c, "ClusterAddons", clusters, func() {
		for i := range clusters.Items {
			trim(&clusters.Items[i])
		}
		f.Clusters = append(f.Clusters, clusters.Items...)
	}, client.InNamespace(namespace))
}

// Members reads the Clusters of a namespace, by name.
func Members(ctx context.Context, c client.Reader, namespace string) (map[string]*member.Member, error) {
	list, all := &clusterv1.ClusterList{}, map[string]*member.Member{}
	err := pages(ctx, c, "Clusters", list, func() {
		for _, cluster := range list.Items {
			all[cluster.Name] = member.OfCluster(&cluster)
		}
	}, client.InNamespace(namespace))
	return all, err
}

// trim drops what no summary shows.
func trim(ca *addonsv1.ClusterAddon) {
	held, isHeld := ca.Annotations[addonsv1.HoldRolloutAnnotation]
	ca.ObjectMeta = metav1.ObjectMeta{Namespace: ca.Namespace, Name: ca.Name}
	if isHeld {
		ca.Annotations = map[string]string{addonsv1.HoldRolloutAnnotation: held}
	}
	for i := range ca.Status.Addons {
		a := &ca.Status.Addons[i]
		a.RecordDigest, a.ServiceAccountName = "", ""
		if a.Drift != nil && a.Drift.Objects == 0 {
			a.Drift.LastManagers, a.Drift.Message = nil, ""
		}
	}
}

// pages lists all objects of a kind, and calls keep with each page in the list.
func pages(ctx context.Context, c client.Reader, kind string, list client.ObjectList, keep func(), options ...client.ListOption) error {
	for {
		if err := c.List(ctx, list, append(options, client.Limit(page), client.Continue(list.GetContinue()))...); err != nil {
			return fmt.Errorf("listing %s: %w", kind, err)
		}
		keep()
		if list.GetContinue() == "" {
			return nil
		}
	}
}

// Revisions returns the revisions of an AddonStack, the newest first.
func Revisions(ctx context.Context, c client.Reader, s *addonsv1.AddonStack) (all []appsv1.ControllerRevision, err error) {
	list := &appsv1.ControllerRevisionList{}
	err = pages(ctx, c, "ControllerRevisions", list, func() { all = append(all, list.Items...) },
		client.InNamespace(s.Namespace), client.MatchingLabels{addonsv1.StackNameLabel: s.Name})
	return stack.OwnRevisions(s, all), err
}

// EventsAbout selects the events about Chandler's objects, in a namespace and with a name; "" for all.
func EventsAbout(namespace, name string) *client.ListOptions {
	about := fields.Set{"regarding.apiVersion": addonsv1.GroupVersion.String()}
	if name != "" {
		about["regarding.name"] = name
	}
	return &client.ListOptions{Namespace: namespace, FieldSelector: about.AsSelector()}
}

// Events returns the events that are selected, in the order of time, with the resourceVersion to watch from.
func Events(ctx context.Context, c client.Reader, about *client.ListOptions) (*eventsv1.EventList, error) {
	list, all := &eventsv1.EventList{}, []eventsv1.Event{}
	err := pages(ctx, c, "Events", list, func() { all = append(all, list.Items...) }, about)
	slices.SortStableFunc(all, func(a, b eventsv1.Event) int { return LastSeen(&a).Compare(LastSeen(&b)) })
	list.Items = all
	return list, err
}

// LastSeen returns when an event last happened.
func LastSeen(e *eventsv1.Event) time.Time {
	repeated := ptr.Deref(e.Series, eventsv1.EventSeries{}).LastObservedTime
	return slices.MaxFunc([]time.Time{e.CreationTimestamp.Time, e.EventTime.Time, e.DeprecatedLastTimestamp.Time, repeated.Time}, time.Time.Compare)
}
