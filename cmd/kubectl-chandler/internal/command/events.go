// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/observed"
)

func (c *call) events() *cobra.Command {
	watches := false
	cmd := c.command("events [NAME]", "Show the events of stacks and clusters in the order of time", cobra.MaximumNArgs(1), func() error {
		about := observed.EventsAbout(c.namespace, append(c.args, "")[0])
		list, err := observed.Events(c, c.client, about)
		if err == nil && len(list.Items) == 0 { // of what there is
			var f *observed.Fleet
			if f, err = c.fleet(); err == nil && len(c.args) > 0 {
				_, err = find(f, c.args[0], kindCluster, kindStack)
			}
		}
		if err != nil {
			return err
		}
		if err := c.print("Events", list, "Events", list); err != nil || !watches {
			return err
		}
		return c.follow(about, list.ResourceVersion)
	})
	cmd.Flags().BoolVarP(&watches, "watch", "w", false, "go on with those that come")
	return c.inAllNamespaces(cmd)
}

// follow prints events that come, until the context ends. A watch that the server ends is begun again.
func (c *call) follow(about *client.ListOptions, from string) error {
	events := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return c.client.Watch(ctx, &eventsv1.EventList{}, about, &client.ListOptions{Raw: &options})
	}}
	_, err := watchtools.Until(c, from, events, func(is watch.Event) (ends bool, _ error) {
		if e, isEvent := is.Object.(*eventsv1.Event); isEvent && is.Type != watch.Deleted {
			return false, c.print("Event", e, "Event", e)
		} else if is.Type == watch.Error {
			return false, apierrors.FromObject(is.Object)
		}
		return false, nil
	})
	if c.Err() != nil {
		return nil //nolint:nilerr // the user ended it
	}
	return fmt.Errorf("watching events: %w", err)
}
