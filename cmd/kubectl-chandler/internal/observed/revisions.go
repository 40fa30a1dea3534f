// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Revisions returns the revisions of an AddonStack, the newest first.
func Revisions(ctx context.Context, c client.Reader, s *addonsv1.AddonStack) ([]appsv1.ControllerRevision, error) {
	var all []appsv1.ControllerRevision
	list := &appsv1.ControllerRevisionList{}
	if err := pages(ctx, c, list, func() { all = append(all, list.Items...) },
		client.InNamespace(s.Namespace), client.MatchingLabels{addonsv1.StackNameLabel: s.Name}); err != nil {
		return nil, fmt.Errorf("listing the revisions of AddonStack %s: %w", s.Name, err)
	}
	return stack.OwnRevisions(s, all), nil
}

// Events returns the events about Chandler's objects, in no order, and the resourceVersion to watch from.
func Events(ctx context.Context, c client.Reader, namespace string) (all []eventsv1.Event, resourceVersion string, err error) {
	list := &eventsv1.EventList{}
	err = pages(ctx, c, list, func() {
		for i := range list.Items {
			if IsAbout(&list.Items[i]) {
				all = append(all, list.Items[i])
			}
		}
	}, client.InNamespace(namespace))
	if err != nil {
		return nil, "", fmt.Errorf("listing events: %w", err)
	}
	return all, list.ResourceVersion, nil
}

// IsAbout reports whether an event is about an object of Chandler.
func IsAbout(e *eventsv1.Event) bool {
	return e.Regarding.GroupVersionKind().Group == addonsv1.GroupVersion.Group
}
