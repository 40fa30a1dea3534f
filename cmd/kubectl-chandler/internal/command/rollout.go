// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

func (s *session) rollout() *cobra.Command {
	cmd := &cobra.Command{Use: "rollout", Short: "See how far the rollout of a stack is, and steer it"}
	reason := ""
	reject := s.onRevision("reject STACK", "Give the newest revision up: no other cluster gets it, and those that have it go back", cobra.ExactArgs(1),
		func(r *appsv1.ControllerRevision, _ []string) (string, *string, error) {
			if reason == "" {
				return "", nil, errors.New("--reason says why")
			}
			return addonsv1.RolloutRejectedAnnotation, &reason, nil
		})
	reject.Flags().StringVar(&reason, "reason", "", "why, for all who look at the stack")
	cmd.AddCommand(s.rolloutStatus(), reject, s.hold(),
		s.onRevision("approve STACK WAVE ...", "Let waves begin that wait for an approval", cobra.MinimumNArgs(2),
			func(r *appsv1.ControllerRevision, waves []string) (string, *string, error) {
				return addonsv1.RolloutApprovedAnnotation, with(r.Annotations[addonsv1.RolloutApprovedAnnotation], waves...), nil
			}),
		s.onRevision("promote STACK", "Let all waves begin without approvals, and without soaks", cobra.ExactArgs(1),
			func(*appsv1.ControllerRevision, []string) (string, *string, error) {
				return addonsv1.RolloutApprovedAnnotation, ptr.To(rollout.All), nil
			}),
		s.onRevision("retry STACK", "Try the newest revision again, which was rejected", cobra.ExactArgs(1),
			func(r *appsv1.ControllerRevision, _ []string) (string, *string, error) {
				if _, rejected := r.Annotations[addonsv1.RolloutRejectedAnnotation]; !rejected {
					return "", nil, fmt.Errorf("revision %s isn't rejected", r.Name)
				}
				return addonsv1.RolloutRejectedAnnotation, nil, nil
			}))
	return cmd
}

// with returns a list that commas separate, with more names in it.
func with(list string, more ...string) *string {
	names := slices.DeleteFunc(strings.Split(list, ","), func(name string) bool { return name == "" || slices.Contains(more, name) })
	return ptr.To(strings.Join(append(names, more...), ","))
}

// onRevision makes a command that annotates the newest revision of a stack, its first argument.
func (s *session) onRevision(use, short string, args cobra.PositionalArgs, annotation func(*appsv1.ControllerRevision, []string) (string, *string, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args, ValidArgsFunction: s.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.client()
			if err != nil {
				return err
			}
			is, revisions, err := s.revisions(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if is.Spec.Rollout == nil || len(revisions) == 0 {
				return fmt.Errorf("AddonStack %s has no rollout", is.Name)
			}
			key, value, err := annotation(&revisions[0], args[1:])
			if err != nil {
				return err
			}
			if err := annotate(cmd.Context(), c, &revisions[0], key, value); err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "%s: %s of revision %s\n", is.Name, cmd.Name(), revisions[0].Name)
			return nil
		},
	}
}

func (s *session) rolloutStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status STACK", Short: "Show how far the rollout of a stack is, and what ends its phase", Args: cobra.ExactArgs(1), ValidArgsFunction: s.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.client()
			if err != nil {
				return err
			}
			o, err := s.object(cmd.Context(), c, kindStack+"/"+args[0])
			if err != nil {
				return err
			}
			is := o.(*addonsv1.AddonStack)
			if is.Status.Rollout == nil {
				return fmt.Errorf("AddonStack %s has no rollout", is.Name)
			}
			rolledOut := meta.FindStatusCondition(is.Status.Conditions, addonsv1.RolledOutCondition)
			if err := s.print("Rollout", is.Status.Rollout, func(p *printing.Printer) { p.Rollout(is, rolledOut) }); err != nil {
				return err
			}
			switch is.Status.Rollout.Phase {
			case addonsv1.RolloutCompleted:
				return nil
			case addonsv1.RolloutHalted, addonsv1.RolloutRollingBack, addonsv1.RolloutRolledBack:
				return verdict(summary.Failed)
			}
			return verdict(summary.Waiting)
		},
	}
}

func (s *session) hold() *cobra.Command {
	release := false
	cmd := &cobra.Command{
		Use: "hold STACK CLUSTER ...", Short: "Keep clusters out of the rollouts of a stack", Args: cobra.MinimumNArgs(2), ValidArgsFunction: s.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.client()
			if err != nil {
				return err
			}
			for _, name := range args[1:] {
				ca, err := s.object(cmd.Context(), c, kindCluster+"/"+name)
				if err != nil {
					return err
				}
				list := ca.GetAnnotations()[addonsv1.HoldRolloutAnnotation]
				value := with(list, args[0])
				if release {
					value = without(list, args[0])
				}
				if err := annotate(cmd.Context(), c, ca, addonsv1.HoldRolloutAnnotation, value); err != nil {
					return err
				}
				fmt.Fprintf(s.Out, "%s: kept out of rollouts of %q\n", name, ptr.Deref(value, ""))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&release, "release", false, "let the clusters take part again")
	return cmd
}

// without returns a list that commas separate without a name, nil if nothing is left.
func without(list, name string) *string {
	names := slices.DeleteFunc(strings.Split(list, ","), func(is string) bool { return is == "" || is == name })
	if len(names) == 0 {
		return nil
	}
	return ptr.To(strings.Join(names, ","))
}
