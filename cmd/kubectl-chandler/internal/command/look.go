// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/observed"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/version"
)

// read reads the scope, with all kinds.
func (s *session) read(cmd *cobra.Command) (*observed.Fleet, error) {
	c, err := s.client()
	if err != nil {
		return nil, err
	}
	scope, err := s.scope()
	if err != nil {
		return nil, err
	}
	return observed.Read(cmd.Context(), c, scope)
}

func (s *session) status() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Show how all stacks and clusters are, and what is wrong", Args: cobra.NoArgs,
		Long: "Show how all stacks and clusters are, and what is wrong, each cause once.\n\n" +
			"Exit code: 0 all is well, 1 something failed, 2 something waits or is on its way, 3 the command failed.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := s.read(cmd)
			if err != nil {
				return err
			}
			status := summary.StatusOf(f, s.selector != "")
			if err := s.print("Status", status, func(p *printing.Printer) { p.Status(status) }); err != nil {
				return err
			}
			return verdict(status.Verdict())
		},
	}
	s.allowAllNamespaces(cmd)
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "labels of the AddonStacks to show")
	return cmd
}

func (s *session) why() *cobra.Command {
	cmd := &cobra.Command{
		Use: "why NAME | cluster/NAME | stack/NAME | addon/NAME", Short: "Show why a cluster, a stack or an add-on is as it is, and the way out",
		Long: "Show why a cluster, a stack or an add-on is as it is, and the way out. A name alone is looked for in this order.\n\n" +
			"Exit code: 0 it is well, 1 it failed, 2 it waits or is on its way, 3 the command failed.",
		Args: cobra.ExactArgs(1), ValidArgsFunction: s.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := s.read(cmd)
			if err != nil {
				return err
			}
			is, err := find(f, args[0], kindCluster, kindStack, kindAddon)
			if err != nil {
				return err
			}
			if is.cluster != nil {
				cluster := summary.ClusterOf(f, is.cluster)
				if err := s.print("Cluster", cluster, func(p *printing.Printer) { p.Cluster(cluster) }); err != nil {
					return err
				}
				return verdict(cluster.Verdict())
			}
			why := summary.AddonWhy(f, is.addon)
			if is.stack != nil {
				why = summary.StackWhy(f, is.stack)
			}
			if err := s.print("Why", why, func(p *printing.Printer) { p.Why(why) }); err != nil {
				return err
			}
			return verdict(why.Verdict())
		},
	}
	s.allowAllNamespaces(cmd)
	return cmd
}

func (s *session) tree() *cobra.Command {
	return &cobra.Command{
		Use: "tree STACK", Short: "Show the add-ons of a stack by what they depend on, with the clusters that aren't ready",
		Args: cobra.ExactArgs(1), ValidArgsFunction: s.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := s.read(cmd)
			if err != nil {
				return err
			}
			is, err := find(f, args[0], kindStack)
			if err != nil {
				return err
			}
			tree := &summary.StackWhy(f, is.stack).Stacks[0]
			return s.print("Tree", tree, func(p *printing.Printer) { p.Tree(tree) })
		},
	}
}

func (s *session) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the versions of this command and of all instances", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.client()
			if err != nil {
				return err
			}
			f := &observed.Fleet{}
			if err := f.ReadInstances(cmd.Context(), c); err != nil {
				return err
			}
			is := &struct {
				Client    string             `json:"client"`
				Instances []summary.Instance `json:"instances"`
			}{version.String(), summary.StatusOf(f, false).Instances}
			return s.print("Version", is, func(p *printing.Printer) { p.Versions(is.Client, is.Instances) })
		},
	}
}
