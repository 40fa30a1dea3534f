// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
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
func (c *call) annotate(o client.Object, key string, value *string) error {
	meta := map[string]any{"annotations": map[string]*string{key: value}}
	if o.GetResourceVersion() != "" {
		meta["resourceVersion"] = o.GetResourceVersion()
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err == nil {
		err = c.client.Patch(c, o, client.RawPatch(types.MergePatchType, patch))
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
	{"pause", "Do nothing on a stack or a cluster until it is resumed", "paused",
		clusterv1.PausedAnnotation, clusterv1.PausedAnnotation, func() *string { return new("") }},
	{"resume", "Go on with what was paused", "resumed",
		clusterv1.PausedAnnotation, clusterv1.PausedAnnotation, func() *string { return nil }},
}

func (c *call) changes() (all []*cobra.Command) {
	for _, is := range annotating {
		all = append(all, c.command(is.use+" STACK | cluster/NAME ...", is.short, cobra.MinimumNArgs(1), func() error {
			for _, argument := range c.args {
				kinds, name, err := kindsOf(argument, kindStack, kindCluster)
				if err != nil {
					return err
				}
				meta := metav1.ObjectMeta{Namespace: c.namespace, Name: name}
				o, key := client.Object(&addonsv1.AddonStack{ObjectMeta: meta}), is.onStack
				if kinds[0] == kindCluster {
					o, key = &addonsv1.ClusterAddon{ObjectMeta: meta}, is.onCluster
				}
				if err := c.annotate(o, key, is.value()); err != nil {
					return err
				}
				fmt.Fprintf(c.Out, "%s: %s\n", argument, is.done)
			}
			return nil
		}))
	}
	return append(all, c.confirm())
}

func (c *call) confirm() *cobra.Command {
	isConfirmed := false
	cmd := onRead(c, "confirm STACK", "Let a held removal through, on all clusters", cobra.ExactArgs(1), c.fleet, func(f *observed.Fleet) error {
		held := slices.DeleteFunc(summary.StatusOf(f, false).Held, func(h summary.Held) bool { return h.Stack != c.args[0] })
		if len(held) == 0 {
			return fmt.Errorf("no removal of stack %s is held here", c.args[0])
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
				if err := c.annotate(ca, addonsv1.ConfirmRemovalAnnotation, &h.Confirmation); err != nil {
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
