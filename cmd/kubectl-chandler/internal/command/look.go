// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/observed"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/version"
)

const exitCodes = "\n\nExit code: 0 all is well, 1 something failed, 2 something waits or is on its way, 3 the command failed."

func (s *session) status() *cobra.Command {
	cmd := s.command("status", "Show how all stacks and clusters are, and what is wrong", cobra.NoArgs, func(c *call) error {
		f, err := c.fleet()
		if err != nil {
			return err
		}
		status := summary.StatusOf(f, c.selector != "")
		c.verdict = status.Verdict()
		return c.print("Status", status, func(p *printing.Printer) { p.Status(status) })
	})
	cmd.Long = "Show how all stacks and clusters are, and what is wrong: each cause once, with its clusters." + exitCodes
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "labels of the AddonStacks to show")
	return s.inAllNamespaces(cmd)
}

func (s *session) why() *cobra.Command {
	cmd := s.command("why NAME | cluster/NAME | stack/NAME | addon/NAME", "Show why a cluster, a stack or an add-on is as it is, and the way out",
		cobra.ExactArgs(1), func(c *call) error {
			f, err := c.fleet()
			if err != nil {
				return err
			}
			is, err := find(f, c.args[0], kindCluster, kindStack, kindAddon)
			if err != nil {
				return err
			}
			if is.cluster != nil {
				cluster := summary.ClusterOf(f, is.cluster)
				c.verdict = cluster.Verdict()
				return c.print("Cluster", cluster, func(p *printing.Printer) { p.Cluster(cluster) })
			}
			why := summary.AddonStatus(f, is.addon)
			if is.stack != nil {
				why = summary.StackStatus(f, is.stack)
			}
			c.verdict = why.Verdict()
			return c.print("Status", why, func(p *printing.Printer) { p.Why(why) })
		})
	cmd.Long = "Show why a cluster, a stack or an add-on is as it is, and the way out. A name alone is looked for in this order." + exitCodes
	return s.inAllNamespaces(cmd)
}

func (s *session) tree() *cobra.Command {
	return s.command("tree STACK", "Show the add-ons of a stack by what they depend on, with the clusters that aren't ready", cobra.ExactArgs(1), func(c *call) error {
		f, err := c.fleet()
		if err != nil {
			return err
		}
		is, err := find(f, c.args[0], kindStack)
		if err != nil {
			return err
		}
		tree := &summary.StackStatus(f, is.stack).Stacks[0]
		return c.print("Tree", tree, func(p *printing.Printer) { p.Tree(tree) })
	})
}

func (s *session) version() *cobra.Command {
	return s.command("version", "Show the versions of this command and of all instances", cobra.NoArgs, func(c *call) error {
		f := &observed.Fleet{}
		if err := f.ReadInstances(c, c.client); err != nil {
			return err
		}
		is := &summary.Versions{Client: version.String(), Instances: summary.StatusOf(f, false).Instances}
		return c.print("Version", is, func(p *printing.Printer) { p.Versions(is) })
	})
}
