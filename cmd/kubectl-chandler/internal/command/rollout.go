// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

func (s *session) rollout() *cobra.Command {
	cmd := &cobra.Command{Use: "rollout", Short: "See how far the rollout of a stack is, and steer it"}
	const approved, rejected = addonsv1.RolloutApprovedAnnotation, addonsv1.RolloutRejectedAnnotation
	reason := ""
	reject := s.onRevision("reject STACK", "Give the newest revision up: no other cluster gets it, and those that have it go back", cobra.ExactArgs(1),
		rejected, func(string, []string) (*string, error) { return &reason, nil })
	reject.Flags().StringVar(&reason, "reason", "", "why, for all who look at the stack")
	if err := reject.MarkFlagRequired("reason"); err != nil {
		panic(err) // it has just been defined
	}
	cmd.AddCommand(s.rolloutStatus(), reject, s.hold(),
		s.onRevision("approve STACK WAVE ...", "Let waves begin that wait for an approval", cobra.MinimumNArgs(2),
			approved, func(list string, waves []string) (*string, error) { return with(list, waves...), nil }),
		s.onRevision("promote STACK", "Let all waves begin without approvals, and without soaks", cobra.ExactArgs(1),
			approved, func(string, []string) (*string, error) { return new(rollout.All), nil }),
		s.onRevision("retry STACK", "Try the newest revision again, which was rejected", cobra.ExactArgs(1),
			rejected, func(why string, _ []string) (*string, error) {
				if why == "" {
					return nil, errors.New("the newest revision isn't rejected")
				}
				return nil, nil
			}))
	return cmd
}

// with returns a list that commas separate, with more names in it.
func with(list string, more ...string) *string {
	return new(strings.Join(append(without(list, more...), more...), ","))
}

// without returns the names of a list that commas separate, but for some.
func without(list string, names ...string) []string {
	return slices.DeleteFunc(strings.Split(list, ","), func(name string) bool { return name == "" || slices.Contains(names, name) })
}

// onRevision makes a command that annotates the newest revision of a stack, its first argument. The annotation's value
// follows from the one before and the other arguments.
func (s *session) onRevision(use, short string, args cobra.PositionalArgs, annotation string, value func(string, []string) (*string, error)) *cobra.Command {
	return s.command(use, short, args, func(c *call) error {
		is, err := c.stack()
		if err != nil {
			return err
		}
		if is.Spec.Rollout == nil || len(is.revisions) == 0 {
			return fmt.Errorf("AddonStack %s has no rollout", is.Name)
		}
		newest := &is.revisions[0]
		next, err := value(newest.Annotations[annotation], c.args[1:])
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

func (s *session) rolloutStatus() *cobra.Command {
	return s.command("status STACK", "Show how far the rollout of a stack is, and what ends its phase", cobra.ExactArgs(1), func(c *call) error {
		is, err := c.stack()
		if err != nil {
			return err
		}
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
		rolledOut := meta.FindStatusCondition(is.Status.Conditions, addonsv1.RolledOutCondition)
		return c.print("Rollout", far, func(p *printing.Printer) { p.Rollout(is.AddonStack, rolledOut) })
	})
}

func (s *session) hold() *cobra.Command {
	release := false
	cmd := s.command("hold STACK CLUSTER ...", "Keep clusters out of the rollouts of a stack", cobra.MinimumNArgs(2), func(c *call) error {
		for _, name := range c.args[1:] {
			ca := &addonsv1.ClusterAddon{}
			if err := c.client.Get(c, client.ObjectKey{Namespace: c.namespace, Name: name}, ca); err != nil {
				return fmt.Errorf("reading cluster %s: %w", name, err)
			}
			list := ca.Annotations[addonsv1.HoldRolloutAnnotation]
			value := with(list, c.args[0])
			if rest := without(list, c.args[0]); release && len(rest) == 0 {
				value = nil
			} else if release {
				value = new(strings.Join(rest, ","))
			}
			if err := c.annotate(ca, addonsv1.HoldRolloutAnnotation, value); err != nil {
				return err
			}
			fmt.Fprintf(c.Out, "%s: held %t\n", name, !release)
		}
		return nil
	})
	cmd.Flags().BoolVar(&release, "release", false, "let the clusters take part again")
	return cmd
}
