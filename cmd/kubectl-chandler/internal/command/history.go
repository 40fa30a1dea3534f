// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// revised is a stack with its revisions, the newest first.
type revised struct {
	*addonsv1.AddonStack
	served    *unstructured.Unstructured // with fields that this program doesn't know
	revisions []appsv1.ControllerRevision
}

// stack reads the stack that the first argument names, with its revisions.
func (c *call) stack() (*revised, error) {
	is := &revised{AddonStack: &addonsv1.AddonStack{}, served: &unstructured.Unstructured{}}
	is.served.SetGroupVersionKind(addonsv1.GroupVersion.WithKind("AddonStack"))
	err := c.client.Get(c, client.ObjectKey{Namespace: c.namespace, Name: c.args[0]}, is.served)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(is.served.Object, is.AddonStack)
	}
	if err != nil {
		return nil, fmt.Errorf("reading AddonStack %s: %w", c.args[0], err)
	}
	is.revisions, err = observed.Revisions(c, c.client, is.AddonStack)
	return is, err
}

func (c *call) history() *cobra.Command {
	return onRead(c, "history STACK", "Show the revisions of a stack: what differs, and which clusters have them", cobra.ExactArgs(1), c.stack,
		func(is *revised) error {
			f := &observed.Fleet{}
			if err := f.ReadClusters(c, c.client, c.namespace); err != nil {
				return err
			}
			history, err := summary.HistoryOf(is.AddonStack, is.revisions, f.Clusters)
			if err != nil {
				return err
			}
			return c.print("History", history, "History", history)
		})
}

func (c *call) undo() *cobra.Command {
	to, dryRun := "", false
	cmd := onRead(c, "undo STACK", "Bring a stack back to a previous revision", cobra.ExactArgs(1), c.stack, func(is *revised) error {
		current, err := stack.Written(is.served, is.AddonStack, is.revisions)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(is.revisions, func(r appsv1.ControllerRevision) bool {
			if to != "" {
				return r.Name == to || strconv.FormatInt(r.Revision, 10) == to
			}
			_, rejected := r.Annotations[addonsv1.RolloutRejectedAnnotation]
			return r.Name != current.Name && !rejected
		})
		if at < 0 {
			return fmt.Errorf("AddonStack %s has no such revision; kubectl chandler history names those that are kept", is.Name)
		}
		target := &is.revisions[at]
		changes, err := stack.Differences(current, target)
		if err != nil {
			return err
		}
		if err := c.write("Changes", changes); err != nil || dryRun {
			return err
		}
		if err := c.writeSpec(is, target); err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "%s: back to revision %d, %s\n", is.Name, target.Revision, target.Name)
		return nil
	})
	cmd.Long = "Write the spec of a previous revision into the stack. Its rollout, updates, deletionPolicy and removalLimit stay as they are,\n" +
		"and allowedRemovals is taken out.\n" +
		"A revision has exact versions: where the stack had a range, it has the version that was taken then."
	cmd.Flags().StringVar(&to, "to-revision", "", "number or name of the revision; by default the newest one that the spec isn't, and that wasn't rejected")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would change")
	return cmd
}

// writeSpec replaces the spec of a stack by that of a revision. What no revision has stays, but for allowedRemovals: it is
// about another edit, and may name add-ons that come back.
func (c *call) writeSpec(is *revised, revision *appsv1.ControllerRevision) error {
	spec := map[string]any{}
	if err := json.Unmarshal(revision.Data.Raw, &spec); err != nil {
		return fmt.Errorf("reading revision %s: %w", revision.Name, err)
	}
	for _, field := range append([]string{"rollout", "updates"}, stack.Policies...) {
		delete(spec, field) // an earlier program may have kept it
		if value, found, _ := unstructured.NestedFieldNoCopy(is.served.Object, "spec", field); found && field != "allowedRemovals" {
			spec[field] = value
		}
	}
	is.served.Object["spec"] = spec // with its resourceVersion: a write in between is a conflict
	if err := c.client.Update(c, is.served); err != nil {
		return fmt.Errorf("writing AddonStack %s: %w", is.Name, err)
	}
	return nil
}
