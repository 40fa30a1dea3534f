// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

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
