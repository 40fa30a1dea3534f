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
	cmd := &cobra.Command{
		Use: "events [NAME]", Short: "Show the events of stacks and clusters in the order of time", Args: cobra.MaximumNArgs(1), ValidArgsFunction: s.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := append(args, "")[0]
			c, err := s.client()
			if err != nil {
				return err
			}
			scope, err := s.scope()
			if err != nil {
				return err
			}
			events, from, err := observed.Events(cmd.Context(), c, scope.Namespace)
			if err != nil {
				return err
			}
			list := &eventsv1.EventList{Items: summary.SortEvents(events, name)}
			if err := s.print("Events", list, func(p *printing.Printer) {
				for i := range list.Items {
					p.Event(&list.Items[i])
				}
			}); err != nil || !watches {
				return err
			}
			return s.follow(cmd.Context(), eventWatcher{c, scope.Namespace}, name, from)
		},
	}
	s.allowAllNamespaces(cmd)
	cmd.Flags().BoolVarP(&watches, "watch", "w", false, "go on with those that come")
	return cmd
}

// eventWatcher watches the events of a namespace, or of all.
type eventWatcher struct {
	client.WithWatch
	namespace string
}

// WatchWithContext implements cache.WatcherWithContext.
func (w eventWatcher) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return w.Watch(ctx, &eventsv1.EventList{}, client.InNamespace(w.namespace), &client.ListOptions{Raw: &options})
}

// follow prints events that come, until the context ends. A watch that the server ends is begun again.
func (s *session) follow(ctx context.Context, events eventWatcher, name, from string) error {
	w, err := watchtools.NewRetryWatcherWithContext(ctx, from, events)
	if err != nil {
		return fmt.Errorf("watching events: %w", err)
	}
	defer w.Stop()
	for is := range w.ResultChan() {
		if is.Type == watch.Error && ctx.Err() == nil {
			return fmt.Errorf("watching events: %w", apierrors.FromObject(is.Object))
		}
		e, isEvent := is.Object.(*eventsv1.Event)
		if !isEvent || is.Type == watch.Deleted || !observed.IsAbout(e) || name != "" && e.Regarding.Name != name {
			continue
		}
		if err := s.print("Event", e, func(p *printing.Printer) { p.Event(e) }); err != nil {
			return err
		}
	}
	return nil
}
