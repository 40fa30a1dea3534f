// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

func (c *call) rollout() *cobra.Command {
	cmd := &cobra.Command{Use: "rollout", Short: "See how far the rollout of a stack is, and steer it"}
	const approved, rejected = addonsv1.RolloutApprovedAnnotation, addonsv1.RolloutRejectedAnnotation
	reason := ""
	reject := c.onRevision("reject STACK", "Give the newest revision up: no other cluster gets it, and those that have it go back", cobra.ExactArgs(1),
		rejected, func(*appsv1.ControllerRevision, []string) (*string, error) { return &reason, nil })
	reject.Flags().StringVar(&reason, "reason", "", "why, for all who look at the stack")
	cobra.CheckErr(reject.MarkFlagRequired("reason"))
	cmd.AddCommand(c.rolloutStatus(), reject, c.hold(),
		c.onRevision("approve STACK WAVE ...", "Let waves begin that wait for an approval", cobra.MinimumNArgs(2),
			approved, func(newest *appsv1.ControllerRevision, waves []string) (*string, error) {
				return list(rollout.Approved(newest).Insert(waves...)), nil
			}),
		c.onRevision("promote STACK", "Let all waves begin without approvals, and without soaks", cobra.ExactArgs(1),
			approved, func(*appsv1.ControllerRevision, []string) (*string, error) { return new(rollout.All), nil }),
		c.onRevision("retry STACK", "Try the newest revision again, which was rejected", cobra.ExactArgs(1),
			rejected, func(newest *appsv1.ControllerRevision, _ []string) (*string, error) {
				if newest.Annotations[rejected] == "" {
					return nil, errors.New("the newest revision isn't rejected")
				}
				return nil, nil
			}))
	return cmd
}

// list returns names with commas between; nil if there are none.
func list(names sets.Set[string]) *string {
	if len(names) == 0 {
		return nil
	}
	return new(strings.Join(sets.List(names), ","))
}

// onRevision makes a command that annotates the newest revision of a stack, its first argument. The annotation's value
// follows from the revision and the other arguments.
func (c *call) onRevision(use, short string, args cobra.PositionalArgs, annotation string,
	value func(*appsv1.ControllerRevision, []string) (*string, error)) *cobra.Command {
	return onRead(c, use, short, args, c.stack, func(is *revised) error {
		if is.Spec.Rollout == nil || len(is.revisions) == 0 {
			return fmt.Errorf("AddonStack %s has no rollout", is.Name)
		}
		newest := &is.revisions[0]
		next, err := value(newest, c.args[1:])
		if err != nil {
			return fmt.Errorf("AddonStack %s: %w", is.Name, err)
		}
		if err := c.annotate(newest, annotation, next); err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "%s: %s of revision %s\n", is.Name, strings.Fields(use)[0], newest.Name)
		return nil
	})
}

func (c *call) rolloutStatus() *cobra.Command {
	return onRead(c, "status STACK", "Show how far the rollout of a stack is, and what ends its phase", cobra.ExactArgs(1), c.stack, func(is *revised) error {
		far := is.Status.Rollout
		if far == nil {
			return fmt.Errorf("AddonStack %s has no rollout", is.Name)
		}
		switch far.Phase {
		case addonsv1.RolloutCompleted:
		case addonsv1.RolloutHalted, addonsv1.RolloutRollingBack, addonsv1.RolloutRolledBack:
			c.verdict = summary.Failed
		default:
			c.verdict = summary.Waiting
		}
		return c.print("Rollout", far, "Rollout", is.AddonStack)
	})
}

func (c *call) hold() *cobra.Command {
	release := false
	cmd := c.command("hold STACK CLUSTER ...", "Keep clusters out of the rollouts of a stack", cobra.MinimumNArgs(2), func() error {
		for _, name := range c.args[1:] {
			ca, err := c.cluster(name)
			if err != nil {
				return err
			}
			stacks := rollout.Held(ca).Insert(c.args[0])
			if release {
				stacks.Delete(c.args[0])
			}
			if err := c.annotate(ca, addonsv1.HoldRolloutAnnotation, list(stacks)); err != nil {
				return err
			}
			fmt.Fprintf(c.Out, "%s: held %t\n", name, !release)
		}
		return nil
	})
	cmd.Flags().BoolVar(&release, "release", false, "let the clusters take part again")
	return cmd
}
