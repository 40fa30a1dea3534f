// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
)

// annotate sets an annotation of an object, or removes it if the value is nil. Only that field is written. If somebody
// else writes the object meanwhile, the error is a conflict.
func annotate(ctx context.Context, c client.Client, o client.Object, key string, value *string) error {
	before := o.DeepCopyObject().(client.Object)
	all := o.GetAnnotations()
	if value == nil {
		delete(all, key)
		o.SetAnnotations(all)
	} else {
		if all == nil {
			all = map[string]string{}
		}
		all[key] = *value
		o.SetAnnotations(all)
	}
	if err := c.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("annotating %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

// object gets a stack or a cluster by name, or kind/name. A name alone is a stack's.
func (s *session) object(ctx context.Context, c client.Client, name string) (client.Object, error) {
	kind, rest, ok := strings.Cut(name, "/")
	if !ok {
		kind, rest = kindStack, name
	}
	var o client.Object
	switch kind {
	case kindStack:
		o = &addonsv1.AddonStack{}
	case kindCluster:
		o = &addonsv1.ClusterAddon{}
	default:
		return nil, fmt.Errorf("%s: the kind is to be %s or %s", name, kindStack, kindCluster)
	}
	namespace, err := s.namespace()
	if err != nil {
		return nil, err
	}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: rest}, o); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind, rest, err)
	}
	return o, nil
}

// onObjects makes a command that annotates each of its arguments, and says done of it.
func (s *session) onObjects(use, short, done string, annotation func(client.Object) (key string, value *string)) *cobra.Command {
	return &cobra.Command{
		Use: use + " STACK | cluster/NAME ...", Short: short, Args: cobra.MinimumNArgs(1), ValidArgsFunction: s.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.client()
			if err != nil {
				return err
			}
			for _, name := range args {
				o, err := s.object(cmd.Context(), c, name)
				if err != nil {
					return err
				}
				key, value := annotation(o)
				if err := annotate(cmd.Context(), c, o, key, value); err != nil {
					return err
				}
				fmt.Fprintf(s.Out, "%s: %s\n", name, done)
			}
			return nil
		},
	}
}

func (s *session) look() *cobra.Command {
	return s.onObjects("look", "Have Chandler look for newer versions of a stack, or try again what failed on a cluster, at once", "asked",
		func(o client.Object) (string, *string) {
			now := time.Now().UTC().Format(time.RFC3339Nano)
			if _, is := o.(*addonsv1.AddonStack); is {
				return addonsv1.LookNowAnnotation, &now
			}
			return addonsv1.ReconcileNowAnnotation, &now
		})
}

func (s *session) pause() *cobra.Command {
	return s.onObjects("pause", "Do nothing on a stack or a cluster until it is resumed", "paused",
		func(client.Object) (string, *string) { return clusterv1.PausedAnnotation, new(string) })
}

func (s *session) resume() *cobra.Command {
	return s.onObjects("resume", "Go on with what was paused", "resumed",
		func(client.Object) (string, *string) { return clusterv1.PausedAnnotation, nil })
}

func (s *session) confirm() *cobra.Command {
	isConfirmed := false
	cmd := &cobra.Command{
		Use: "confirm STACK", Short: "Let a held removal through, on all clusters", Args: cobra.ExactArgs(1), ValidArgsFunction: s.completeNames,
		Long: "Show which add-ons a held removal of a stack would take away from which clusters. With --yes, let it through.\n" +
			"The stack may be gone.",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := s.read(cmd)
			if err != nil {
				return err
			}
			held := summary.StatusOf(f, false).Held
			held = slices.DeleteFunc(held, func(h summary.Held) bool { return h.Stack != args[0] })
			if len(held) == 0 {
				return fmt.Errorf("no removal of stack %s is held here", args[0])
			}
			if err := s.print("Held", &struct {
				Held []summary.Held `json:"held"`
			}{held}, func(p *printing.Printer) { p.WouldGo(held) }); err != nil || !isConfirmed {
				return errors.Join(err, verdict(summary.Waiting))
			}
			c, err := s.client()
			if err != nil {
				return err
			}
			for _, h := range held {
				for _, name := range h.Clusters {
					ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name}}
					patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, addonsv1.ConfirmRemovalAnnotation, h.Confirmation)
					if err := c.Patch(cmd.Context(), ca, client.RawPatch("application/merge-patch+json", patch)); err != nil {
						return fmt.Errorf("confirming the removal on cluster %s: %w", name, err)
					}
				}
				fmt.Fprintf(s.ErrOut, "Confirmed on %d clusters\n", len(h.Clusters))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&isConfirmed, "yes", false, "let the removal through")
	return cmd
}
