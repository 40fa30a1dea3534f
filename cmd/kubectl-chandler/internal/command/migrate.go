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
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/internal/migration"
	"github.com/cluster-chandler/chandler/internal/observed"
)

func (c *call) migrate() *cobra.Command {
	w := &migration.World{}
	applies, back, timeout, generated := false, false, time.Duration(0), ""
	cmd := c.command("migrate caaph|flux|helm [NAME ...]", "Make AddonStacks of releases that others installed, or go back to plain releases of Helm",
		cobra.MinimumNArgs(1), func() (err error) {
			w.Namespace, w.Origin, w.Names, w.Renew = c.namespace, migration.Origin(c.args[0]), c.args[1:], generated == "renew"
			switch {
			case !slices.Contains(migration.Origins, w.Origin):
				return fmt.Errorf("%s: it is to be one of %s", w.Origin, migration.Origins)
			case !w.Renew && generated != "keep":
				return fmt.Errorf("--generated-values %s: it is to be keep or renew", generated)
			}
			w.Workload = func(ctx context.Context, cluster string) (client.Client, error) {
				ca := &addonsv1.ClusterAddon{}
				ca.Namespace, ca.Name, ca.Spec.ClusterName = c.namespace, cluster, cluster
				return observed.Workload(ctx, c.client, ca, "")
			}
			if w.Client, err = c.everyKind(); err == nil && c.selector != "" {
				w.Selector, err = metav1.ParseToLabelSelector(c.selector)
			}
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c, timeout)
			defer cancel()
			var steps []migration.Step
			if back {
				steps, err = w.Back(ctx)
			} else {
				steps, err = c.takeover(ctx, w, applies)
			}
			if err == nil && applies {
				return migration.Run(ctx, steps, func(name string) { fmt.Fprintln(c.Out, printing.Clean(name)) })
			}
			for _, s := range steps {
				fmt.Fprintln(c.ErrOut, "# --apply:", printing.Clean(s.Name))
			}
			return err
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
	cmd.Flags().BoolVar(&applies, "apply", false, "do it")
	cmd.Flags().BoolVar(&back, "back", false, "leave plain releases of Helm in place of the AddonStacks that this command made")
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Minute, "how long to wait for clusters")
	cmd.Flags().StringToStringVar(&w.Repositories, "repository", nil, "where the charts of a name are, as in web=https://charts.example.org, or an address with oci:")
	cmd.Flags().StringVar(&generated, "generated-values", "keep", "keep, or renew, which lets charts make those values again that can't be kept")
	cmd.Flags().StringVarP(&c.selector, "selector", "l", "", "labels of the Clusters; by default all of the namespace")
	return cmd
}

// takeover returns the steps of a takeover, and writes the YAML unless they are to be done.
func (c *call) takeover(ctx context.Context, w *migration.World, applies bool) ([]migration.Step, error) {
	found, err := migration.Gather(ctx, w)
	if err != nil {
		return nil, err
	}
	plans := found.Plans()
	found.Foresee(ctx, plans, planner{w.Client, c.ErrOut}.await)
	for _, note := range found.Notes {
		fmt.Fprintln(c.ErrOut, "# note:", printing.Clean(note))
	}
	for _, problem := range found.Problems {
		fmt.Fprintln(c.ErrOut, "# problem:", printing.Clean(problem))
	}
	switch {
	case !applies:
		fmt.Fprint(c.Out, migration.YAML(plans))
	case len(found.Problems) > 0:
		return nil, errors.New("nothing is done before the problems are solved. Name what is to be moved to leave out the rest")
	}
	return found.Takeover(plans), nil
}
