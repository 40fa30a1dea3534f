// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/observed"
)

// annotate sets an annotation of an object, or removes it if the value is nil. Nothing else is written. If the object has
// a resourceVersion, and somebody wrote it since, the error is a conflict.
func annotate(ctx context.Context, c client.Client, o client.Object, key string, value *string) error {
	metadata := map[string]any{"annotations": map[string]*string{key: value}}
	if o.GetResourceVersion() != "" {
		metadata["resourceVersion"] = o.GetResourceVersion()
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err == nil {
		err = c.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
	}
	if err != nil {
		return fmt.Errorf("annotating %s: %w", o.GetName(), err)
	}
	return nil
}

// annotating are commands that annotate each of their arguments, stacks and clusters, and say that it is done.
var annotating = []struct {
	use, short, done, onStack, onCluster string
	value                                func() *string
}{
	{"look", "Have Chandler look for newer versions of a stack, or try again what failed on a cluster, at once", "asked",
		addonsv1.LookNowAnnotation, addonsv1.ReconcileNowAnnotation, func() *string { return new(time.Now().UTC().Format(time.RFC3339Nano)) }},
	{"pause", "Write nothing to the clusters of a stack, or to one cluster, until it is resumed", "paused",
		clusterv1.PausedAnnotation, clusterv1.PausedAnnotation, func() *string { return new("") }},
	{"resume", "Continue with what was paused", "resumed",
		clusterv1.PausedAnnotation, clusterv1.PausedAnnotation, func() *string { return nil }},
}

// pausedTogether is the value of the annotation on stacks that were paused with --all. They are resumed with it, too.
const pausedTogether = "all"

func (c *call) changes() (commands []*cobra.Command) {
	for _, is := range annotating {
		all := false
		cmd := c.command(is.use+" STACK | cluster/NAME ...", is.short, nil, func() error {
			targets, err := c.targets(all)
			if err != nil {
				return err
			}
			for _, o := range targets {
				ca, isCluster := o.(*addonsv1.ClusterAddon)
				key, name, value, said := is.onStack, o.GetName(), is.value(), is.done
				if isCluster {
					key, name = is.onCluster, kindCluster+"/"+name
				} else if all && value != nil {
					value = new(pausedTogether)
				}
				switch had, isSet := o.GetAnnotations()[key]; {
				case all && isSet && had != pausedTogether:
					value, said = &had, "stays paused, as it was paused alone"
				case value == nil && !isSet:
					said = "wasn't paused"
				}
				o.SetResourceVersion("") // others write the status meanwhile
				if err := annotate(c, c.client, o, key, value); err != nil {
					return err
				}
				if isCluster && value == nil {
					if is := meta.FindStatusCondition(ca.Status.Conditions, addonsv1.PausedCondition); is != nil && is.Status == metav1.ConditionTrue &&
						!strings.Contains(is.Message, clusterv1.PausedAnnotation) {
						return fmt.Errorf("%s stays paused: %s", name, is.Message)
					}
				}
				fmt.Fprintf(c.Out, "%s: %s\n", name, said)
			}
			return nil
		})
		if is.use != "look" {
			cmd.Flags().BoolVar(&all, "all", false, is.use+" all stacks of the namespace, or with -A of all namespaces")
			c.inAllNamespaces(cmd)
		}
		commands = append(commands, cmd)
	}
	return append(commands, c.confirm())
}

// targets reads what the arguments name, or all stacks. A name alone is that of a stack rather than of a cluster.
func (c *call) targets(all bool) (targets []client.Object, err error) {
	if all == (len(c.args) > 0) || c.allNamespaces && !all {
		return nil, errors.New("name stacks or clusters, or all stacks with --all")
	}
	if all {
		f, err := c.fleet()
		for i := 0; err == nil && i < len(f.Stacks); i++ {
			targets = append(targets, &f.Stacks[i])
		}
		return targets, err
	}
	for _, argument := range c.args {
		kinds, name, err := kindsOf(argument, kindStack, kindCluster)
		if err != nil {
			return nil, err
		}
		is := map[string]client.Object{kindStack: &addonsv1.AddonStack{}, kindCluster: &addonsv1.ClusterAddon{}}
		for _, kind := range kinds {
			if err = c.read(is[kind], name); !apierrors.IsNotFound(err) {
				targets = append(targets, is[kind])
				break
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return targets, nil
}

func (c *call) confirm() *cobra.Command {
	isConfirmed := false
	cmd := onRead(c, "confirm STACK", "Let a held removal through, on all clusters", cobra.ExactArgs(1), c.fleet, func(f *observed.Fleet) error {
		held := slices.DeleteFunc(summary.StatusOf(f, false).Held, func(h summary.Held) bool { return h.Stack != c.args[0] })
		if len(held) == 0 {
			return fmt.Errorf("no removal of stack %s is held here; kubectl chandler status lists those that are", c.args[0])
		}
		if err := c.write("WouldGo", held); err != nil {
			return err
		}
		if !isConfirmed {
			fmt.Fprintln(c.Out, "--yes removes them. To keep them, undo the change")
			c.verdict = summary.Waiting
			return nil
		}
		for _, h := range held {
			for _, name := range h.Clusters {
				ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name}}
				if err := annotate(c, c.client, ca, addonsv1.ConfirmRemovalAnnotation, &h.Confirmation); err != nil {
					return err
				}
			}
		}
		fmt.Fprintln(c.Out, "confirmed")
		return nil
	})
	cmd.Long = "Show which add-ons a held removal would take away from which clusters. With --yes, let it through. The stack may be gone."
	cmd.Flags().BoolVar(&isConfirmed, "yes", false, "let the removal through")
	return cmd
}
