// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

const (
	approved = addonsv1.RolloutApprovedAnnotation
	promoted = addonsv1.RolloutPromotedAnnotation
	rejected = addonsv1.RolloutRejectedAnnotation
	halted   = addonsv1.RolloutHaltedAnnotation
)

// steered is a stack with a rollout, how far that is, and the revision that a command is about.
type steered struct {
	*revised
	far      addonsv1.RolloutStatus
	revision *appsv1.ControllerRevision
}

// mark is an annotation to write on a revision, nil to take it off, and what the command says then.
type mark struct {
	annotation string
	value      *string
	said       string
}

func (c *call) rollout() *cobra.Command {
	reason, full := "", false
	reject := c.steering("reject STACK", "Give the revision under way up: no other cluster gets it, and those that have it go back", cobra.ExactArgs(1),
		func(is *steered) (mark, error) {
			leaves := int32(0)
			if is.revision.Name == is.far.Revision && is.Status.Clusters != nil {
				leaves = ptr.Deref(is.Status.Clusters.Updated, 0)
			}
			return mark{rejected, &reason, "is rejected. It leaves " + printing.Number(leaves, "cluster")}, nil
		})
	reject.Flags().StringVar(&reason, "reason", "", "why, for all who look at the stack")
	cobra.CheckErr(reject.MarkFlagRequired("reason"))
	promote := c.steering("promote STACK", "End what the rollout waits for now: an approval, a soak, or clusters that are ready", cobra.ExactArgs(1),
		func(is *steered) (mark, error) {
			if full {
				return mark{approved, new(rollout.All), "is promoted: all waves begin without approvals and soaks"}, nil
			}
			return is.step()
		})
	promote.Flags().BoolVar(&full, "full", false, "let all waves begin, without approvals and soaks")
	return group("rollout", "See how far the rollout of a stack is, and steer it", c.rolloutStatus(), c.hold(), reject, promote,
		c.steering("approve STACK WAVE ...", "Let waves begin that wait for an approval", cobra.MinimumNArgs(2), func(is *steered) (mark, error) {
			waves := sets.New(c.args[1:]...)
			if unknown := waves.Difference(is.waves()); len(unknown) > 0 {
				return mark{}, fmt.Errorf("there is no wave %s; there are %s", *list(unknown), *list(is.waves()))
			}
			return is.adds(approved, "has the approval of", waves), nil
		}),
		c.steering("retry STACK", "Try a rejected revision again", cobra.ExactArgs(1), func(is *steered) (mark, error) {
			return is.drops(rejected, "is tried again", "isn't rejected; a halted one continues by rollout resume")
		}),
		c.steering("resume STACK", "Let a halted rollout continue", cobra.ExactArgs(1), func(is *steered) (mark, error) {
			return is.drops(halted, "continues", "isn't halted")
		}))
}

// list returns names with commas between; nil if there are none.
func list(names sets.Set[string]) *string {
	if len(names) == 0 {
		return nil
	}
	return new(strings.Join(sets.List(names), ","))
}

// adds adds waves to those that an annotation names.
func (is *steered) adds(annotation, said string, waves sets.Set[string]) mark {
	return mark{annotation, list(rollout.Names(is.revision.Annotations[annotation]).Union(waves)), said + " " + *list(waves)}
}

// drops takes an annotation off, whatever its value.
func (is *steered) drops(annotation, said, lacking string) (mark, error) {
	if !metav1.HasAnnotation(is.revision.ObjectMeta, annotation) {
		return mark{}, fmt.Errorf("%s %s", is.revision.Name, lacking)
	}
	return mark{annotation, nil, said}, nil
}

// steering makes a command that annotates a revision of a stack, its first argument: the one under way, or the one that
// --revision names. It says which versions that has.
func (c *call) steering(use, short string, args cobra.PositionalArgs, do func(*steered) (mark, error)) *cobra.Command {
	name := ""
	cmd := onRead(c, use, short, args, c.stack, func(is *revised) error {
		s := &steered{revised: is, far: ptr.Deref(is.Status.Rollout, addonsv1.RolloutStatus{})}
		m, err := mark{}, s.aim(name, strings.HasPrefix(use, "retry"))
		if err == nil {
			m, err = do(s)
		}
		if err != nil {
			return fmt.Errorf("AddonStack %s: %w", is.Name, err)
		}
		if strings.HasPrefix(use, "approve") {
			fmt.Fprintln(c.Out, printing.Clean(recalled(c, c.client, s.revision)))
		}
		if err := annotate(c, c.client, s.revision, m.annotation, m.value); err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "%s: %s\n", s.revision.Name, stack.Versions(stack.SpecAt(is.revisions, s.revision.Name)))
		if before := s.far.Completed; before != s.revision.Name {
			fmt.Fprintf(c.Out, "in place of %s: %s\n", before, stack.Versions(stack.SpecAt(is.revisions, before)))
		}
		fmt.Fprintln(c.Out, s.revision.Name, m.said)
		return nil
	})
	cmd.Flags().StringVar(&name, "revision", "", "name or number of another revision than the one under way")
	return cmd
}

// aim sets the revision: that of a name or number, for "" the one under way. If a rejected one is wanted, and that one isn't, it
// is the newest one that is.
func (is *steered) aim(name string, wantsRejected bool) error {
	switch {
	case is.Spec.Rollout == nil:
		return errors.New("there is no spec.rollout")
	case name == "" && is.Status.ObservedGeneration != is.Generation:
		return errors.New("the status is older than the spec: try again in a moment, or name a revision with --revision")
	}
	is.revision = is.named(cmp.Or(name, is.far.Revision))
	if name == "" && wantsRejected && !isRejected(is.revision) {
		if at := slices.IndexFunc(is.revisions, func(r appsv1.ControllerRevision) bool { return isRejected(&r) }); at >= 0 {
			is.revision = &is.revisions[at]
		}
	}
	if is.revision == nil {
		return fmt.Errorf("there is no revision %q; kubectl chandler history names those that are kept", cmp.Or(name, is.far.Revision))
	}
	return nil
}

// isRejected reports whether there is a revision that was rejected, maybe without a reason.
func isRejected(r *appsv1.ControllerRevision) bool {
	return r != nil && metav1.HasAnnotation(r.ObjectMeta, rejected)
}

// waves returns the names of the waves that there are, by the spec and by the attempt.
func (is *steered) waves() sets.Set[string] {
	all := sets.New[string]()
	strategy, _ := rollout.StrategyOf(is.Spec.Rollout, nil) // what isn't valid has names all the same
	for _, wave := range strategy.Waves {
		all.Insert(wave.Name)
	}
	for _, wave := range rollout.AttemptOf(is.revision).Waves {
		all.Insert(wave.Name)
	}
	return all
}

// step returns what ends the phase of the rollout.
func (is *steered) step() (mark, error) {
	waits := slices.Contains([]addonsv1.RolloutPhase{addonsv1.RolloutWaitingForApproval, addonsv1.RolloutSoaking, addonsv1.RolloutWaitingForClusters}, is.far.Phase)
	switch wave := sets.New(is.far.Wave); {
	case is.revision.Name != is.far.Revision:
		return mark{}, fmt.Errorf("%s isn't under way: only --full promotes it", is.revision.Name)
	case is.far.Phase == addonsv1.RolloutWaitingForInstances:
		return mark{}, errors.New("only --full passes other instances, with all approvals and soaks")
	case !waits:
		return mark{}, fmt.Errorf("there is nothing to promote: it is %s. %s", is.far.Phase, conditions.GetMessage(is.AddonStack, addonsv1.RolledOutCondition))
	case is.far.Wave == "": // several instances manage it, each as far as it is
		return mark{}, errors.New("the status names no wave: approve one by its name, or promote all with --full")
	case is.far.Phase == addonsv1.RolloutWaitingForApproval:
		return is.adds(approved, "has the approval of", wave), nil
	default:
		return is.adds(promoted, "is over with", wave), nil
	}
}

func (c *call) rolloutStatus() *cobra.Command {
	watches := false
	cmd := c.command("status STACK", "Show how far the rollout of a stack is, and what ends its phase", cobra.ExactArgs(1), func() error {
		return c.again(watches, c.showRollout)
	})
	cmd.Flags().BoolVarP(&watches, "watch", "w", false, "show it again after each change, until it is completed, halted or rolled back")
	return cmd
}

// showRollout shows how far a rollout is, and reports whether it has come to its end.
func (c *call) showRollout() (ends bool, _ error) {
	is, err := c.stack()
	if err != nil {
		return false, err
	}
	far := is.Status.Rollout
	if far == nil {
		return false, fmt.Errorf("AddonStack %s has no rollout", is.Name)
	}
	switch far.Phase {
	case addonsv1.RolloutCompleted:
		c.verdict, ends = summary.Well, true
	case addonsv1.RolloutHalted, addonsv1.RolloutRolledBack:
		c.verdict, ends = summary.Failed, true
	case addonsv1.RolloutRollingBack:
		c.verdict = summary.Failed
	default:
		c.verdict = summary.Waiting
	}
	ends = ends && is.Status.ObservedGeneration == is.Generation
	if err := c.print("Rollout", far, "Rollout", is.AddonStack); err != nil || c.output != "wide" {
		return ends, err
	}
	f := &observed.Fleet{}
	members, err := observed.Members(c, c.client, c.namespace)
	if err = errors.Join(err, f.ReadClusters(c, c.client, c.namespace)); err != nil {
		return ends, err
	}
	return ends, c.write("Members", summary.WavesOf(is.AddonStack, is.revisions, members, f.Clusters, time.Now()))
}

func (c *call) hold() *cobra.Command {
	release := false
	cmd := c.command("hold STACK CLUSTER ...", "Keep clusters out of the changes of a stack, with and without spec.rollout", cobra.MinimumNArgs(2), func() error {
		of, clusters := c.args[0], make([]addonsv1.ClusterAddon, len(c.args)-1)
		if err := c.read(&addonsv1.AddonStack{}, of); err != nil && !release { // one that is gone can be released from
			return err
		}
		for i, name := range c.args[1:] {
			if err := c.read(&clusters[i], name); err != nil {
				return err
			}
			if release && rollout.Held(&clusters[i]).Has(rollout.All) {
				return fmt.Errorf("%s is held out of changes of all stacks, by annotation %s", name, addonsv1.HoldRolloutAnnotation)
			}
		}
		for i := range clusters {
			stacks, said := rollout.Held(&clusters[i]), "held out of"
			if release && stacks.Has(of) {
				said = "gets"
			} else if release {
				said = "wasn't held out of"
			}
			if stacks.Insert(of); release {
				stacks.Delete(of)
			}
			if err := annotate(c, c.client, &clusters[i], addonsv1.HoldRolloutAnnotation, list(stacks)); err != nil {
				return err
			}
			fmt.Fprintf(c.Out, "%s: %s changes of %s\n", clusters[i].Name, said, of)
		}
		return nil
	})
	cmd.Flags().BoolVar(&release, "release", false, "let the clusters have changes again")
	return cmd
}
