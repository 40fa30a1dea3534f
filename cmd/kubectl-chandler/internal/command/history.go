// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/observed"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
)

// revisions returns a stack of the namespace with its revisions, the newest first.
func (s *session) revisions(ctx context.Context, c client.Client, name string) (*addonsv1.AddonStack, []appsv1.ControllerRevision, error) {
	o, err := s.object(ctx, c, kindStack+"/"+name)
	if err != nil {
		return nil, nil, err
	}
	is := o.(*addonsv1.AddonStack)
	revisions, err := observed.Revisions(ctx, c, is)
	return is, revisions, err
}

func (s *session) history() *cobra.Command {
	return &cobra.Command{
		Use: "history STACK", Short: "Show the revisions of a stack: what differs, and which clusters have them", Args: cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.client()
			if err != nil {
				return err
			}
			is, revisions, err := s.revisions(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			f := &observed.Fleet{}
			if err := f.ReadClusters(cmd.Context(), c, observed.Scope{Namespace: is.Namespace}); err != nil {
				return err
			}
			history, err := summary.HistoryOf(is, revisions, f.Clusters)
			if err != nil {
				return err
			}
			return s.print("History", history, func(p *printing.Printer) { p.History(history) })
		},
	}
}

func (s *session) undo() *cobra.Command {
	to, dryRun := "", false
	cmd := &cobra.Command{
		Use: "undo STACK", Short: "Bring a stack back to a previous revision", Args: cobra.ExactArgs(1), ValidArgsFunction: s.completeNames,
		Long: "Write the spec of a previous revision into the stack. Its rollout and updates stay as they are.\n" +
			"A revision has exact versions: where the stack had a range, it has the version that was taken then.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.client()
			if err != nil {
				return err
			}
			is, revisions, err := s.revisions(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			at, err := previous(revisions, to)
			if err != nil {
				return fmt.Errorf("AddonStack %s: %w", is.Name, err)
			}
			changes, err := summary.Changes(&revisions[0], &revisions[at])
			if err != nil {
				return err
			}
			s.printer().Changes(changes)
			if dryRun {
				return nil
			}
			if err := writeSpec(cmd.Context(), c, is, &revisions[at]); err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "%s: back to revision %d, %s\n", is.Name, revisions[at].Revision, revisions[at].Name)
			return nil
		},
	}
	cmd.Flags().StringVar(&to, "to-revision", "", "number or name of the revision; by default the newest one before the last that wasn't rejected")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would change")
	return cmd
}

// previous returns the index of the revision to go back to. Revisions come the newest first.
func previous(revisions []appsv1.ControllerRevision, to string) (int, error) {
	at := slices.IndexFunc(revisions, func(r appsv1.ControllerRevision) bool {
		return to != "" && (r.Name == to || strconv.FormatInt(r.Revision, 10) == to)
	})
	for i := 1; to == "" && i < len(revisions) && at < 0; i++ {
		if _, rejected := revisions[i].Annotations[addonsv1.RolloutRejectedAnnotation]; !rejected {
			at = i
		}
	}
	if at < 0 {
		return 0, fmt.Errorf("there is no such revision; kubectl chandler history names those that are kept")
	}
	return at, nil
}

// writeSpec replaces the spec of a stack by that of a revision, with all fields that this program doesn't know. What no
// revision has stays: the rollout, and how updates are taken.
func writeSpec(ctx context.Context, c client.Client, is *addonsv1.AddonStack, revision *appsv1.ControllerRevision) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(addonsv1.GroupVersion.WithKind("AddonStack"))
	if err := c.Get(ctx, client.ObjectKeyFromObject(is), live); err != nil {
		return fmt.Errorf("reading AddonStack %s: %w", is.Name, err)
	}
	spec := map[string]any{}
	if err := json.Unmarshal(revision.Data.Raw, &spec); err != nil {
		return fmt.Errorf("reading revision %s: %w", revision.Name, err)
	}
	for _, field := range []string{"rollout", "updates"} {
		if value, found, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", field); found {
			spec[field] = value
		}
	}
	live.Object["spec"] = spec // with its resourceVersion: a write in between is a conflict
	if err := c.Update(ctx, live); err != nil {
		return fmt.Errorf("writing AddonStack %s: %w", is.Name, err)
	}
	return nil
}
