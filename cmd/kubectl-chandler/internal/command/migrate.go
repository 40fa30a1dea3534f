// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/internal/migration"
	"github.com/cluster-chandler/chandler/internal/observed"
)

// migrating is a migration with its flags.
type migrating struct {
	genericiooptions.IOStreams
	migration.World
	appliesIt, goesBack bool
	timeout             time.Duration
	generated           string
}

func (c *call) migrate() *cobra.Command {
	m := &migrating{IOStreams: c.IOStreams}
	cmd := c.command("migrate caaph|flux|helm [NAME ...]", "Make AddonStacks of releases that others installed, or go back to plain releases of Helm",
		cobra.MinimumNArgs(1), func() (err error) {
			m.Namespace, m.Origin, m.Names = c.namespace, migration.Origin(c.args[0]), c.args[1:]
			m.Workload = func(ctx context.Context, cluster string) (client.Client, error) {
				ca := &addonsv1.ClusterAddon{}
				ca.Namespace, ca.Name, ca.Spec.ClusterName = c.namespace, cluster, cluster
				return observed.Workload(ctx, c.client, ca, "")
			}
			if m.Client, err = c.everyKind(); err != nil {
				return err
			}
			if c.selector != "" {
				if m.Selector, err = metav1.ParseToLabelSelector(c.selector); err != nil {
					return fmt.Errorf("--selector: %w", err)
				}
			}
			return m.run(c)
		})
	cmd.Long = "Make AddonStacks of what the Helm add-on provider (caaph), Flux, or people with Helm installed on workload clusters.\n" +
		"Names are of HelmChartProxies, HelmReleases or releases, as in web or default/web; with --back, of AddonStacks.\n\n" +
		"It writes AddonStacks and Secrets as YAML, and the steps. With --apply it does them, and continues after an interruption."
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) == 0 {
			names = []cobra.Completion{"caaph", "flux", "helm"}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	cmd.Flags().BoolVar(&m.appliesIt, "apply", false, "do it")
	cmd.Flags().BoolVar(&m.goesBack, "back", false, "leave plain releases of Helm in place of the AddonStacks that this command made")
	cmd.Flags().DurationVar(&m.timeout, "timeout", 30*time.Minute, "how long to wait for clusters")
	cmd.Flags().StringToStringVar(&m.Repositories, "repository", nil, "where the charts of a name are, as in web=https://charts.example.org, or an address with oci:")
	cmd.Flags().StringVar(&m.generated, "generated-values", "keep", "keep, or renew, which lets charts make those values again that can't be kept")
	cmd.Flags().StringVarP(&c.selector, "selector", "l", "", "labels of the Clusters; by default all of the namespace")
	return cmd
}

func (m *migrating) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	if !slices.Contains(migration.Origins, m.Origin) {
		return fmt.Errorf("%s: it is to be one of %s", m.Origin, migration.Origins)
	}
	if m.Renew = m.generated == "renew"; !m.Renew && m.generated != "keep" {
		return fmt.Errorf("--generated-values %s: it is to be keep or renew", m.generated)
	}
	steps := m.takeover
	if m.goesBack {
		steps = m.Back
	}
	todo, err := steps(ctx)
	if err != nil {
		return err
	}
	if m.appliesIt {
		return migration.Run(ctx, todo, func(name string) { fmt.Fprintln(m.Out, printing.Clean(name)) })
	}
	for _, s := range todo {
		fmt.Fprintln(m.ErrOut, "# --apply:", printing.Clean(s.Name))
	}
	return nil
}

// takeover returns the steps of a takeover, and writes the YAML unless they are to be done.
func (m *migrating) takeover(ctx context.Context) ([]migration.Step, error) {
	found, err := migration.Gather(ctx, &m.World)
	if err != nil {
		return nil, err
	}
	plans := found.Plans()
	found.Foresee(ctx, plans, planner{m.Client, m.ErrOut}.await)
	for _, note := range found.Notes {
		fmt.Fprintln(m.ErrOut, "# note:", printing.Clean(note))
	}
	for _, problem := range found.Problems {
		fmt.Fprintln(m.ErrOut, "# problem:", printing.Clean(problem))
	}
	switch {
	case !m.appliesIt:
		fmt.Fprint(m.Out, migration.YAML(plans))
	case len(found.Problems) > 0:
		return nil, errors.New("nothing is done before the problems are solved. Name what is to be moved to leave out the rest")
	}
	return found.Takeover(plans), nil
}
