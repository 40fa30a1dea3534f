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
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/observed"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
)

func (s *session) events() *cobra.Command {
	watches := false
	cmd := s.command("events [NAME]", "Show the events of stacks and clusters in the order of time", cobra.MaximumNArgs(1), func(c *call) error {
		events, from, err := observed.Events(c, c.client, c.namespace)
		if err != nil {
			return err
		}
		name := append(c.args, "")[0]
		list := &eventsv1.EventList{Items: summary.SortEvents(events, name)}
		if err := c.print("Events", list, func(p *printing.Printer) {
			for i := range list.Items {
				p.Event(&list.Items[i])
			}
		}); err != nil || !watches {
			return err
		}
		return c.follow(name, from)
	})
	cmd.Flags().BoolVarP(&watches, "watch", "w", false, "go on with those that come")
	return s.inAllNamespaces(cmd)
}

// WatchWithContext implements cache.WatcherWithContext for events.
func (c *call) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return c.client.Watch(ctx, &eventsv1.EventList{}, client.InNamespace(c.namespace), &client.ListOptions{Raw: &options})
}

// follow prints events that come, until the context ends. A watch that the server ends is begun again.
func (c *call) follow(name, from string) error {
	w, err := watchtools.NewRetryWatcherWithContext(c, from, c)
	if err != nil {
		return fmt.Errorf("watching events: %w", err)
	}
	defer w.Stop()
	for is := range w.ResultChan() {
		if is.Type == watch.Error && c.Err() == nil {
			return fmt.Errorf("watching events: %w", apierrors.FromObject(is.Object))
		}
		e, isEvent := is.Object.(*eventsv1.Event)
		if !isEvent || is.Type == watch.Deleted || !observed.IsAbout(e) || name != "" && e.Regarding.Name != name {
			continue
		}
		if err := c.print("Event", e, func(p *printing.Printer) { p.Event(e) }); err != nil {
			return err
		}
	}
	return nil
}
