// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/migration"
	"github.com/cluster-chandler/chandler/internal/observed"
)

// migrating has the flags of a migration.
type migrating struct {
	appliesIt, goesBack bool
	repositories        map[string]string
	timeout             time.Duration
}

func (s *session) migrate() *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "Make AddonStacks of releases that others installed, or go back to plain releases of Helm"}
	for _, of := range []struct {
		origin     migration.Origin
		use, short string
	}{
		{migration.Provider, "caaph [HELMCHARTPROXY ...]", "Move what the Helm add-on provider installed"},
		{migration.Flux, "flux [HELMRELEASE ...]", "Move what Flux installed on workload clusters"},
		{migration.Helm, "helm [[NAMESPACE/]RELEASE ...]", "Move what people installed with Helm on workload clusters"},
	} {
		m := &migrating{}
		sub := s.command(of.use, of.short, cobra.ArbitraryArgs, func(c *call) error { return m.run(c, of.origin) })
		sub.Long = of.short + ".\n\nIt writes the AddonStacks and Secrets as YAML, and what to do. With --apply it does that, step by step. " +
			"A command that was interrupted continues where it was. With --back it leaves plain releases of Helm. The names are those of AddonStacks then."
		sub.ValidArgsFunction = nil
		sub.Flags().BoolVar(&m.appliesIt, "apply", false, "do it")
		sub.Flags().BoolVar(&m.goesBack, "back", false, "leave plain releases of Helm in place of the AddonStacks that this command made")
		sub.Flags().DurationVar(&m.timeout, "timeout", 30*time.Minute, "how long to wait for clusters")
		sub.Flags().StringToStringVar(&m.repositories, "repository", nil, "where the charts of a name are, as in web=https://charts.example.org, or an address with oci:")
		sub.Flags().StringVarP(&s.selector, "selector", "l", "", "labels of the Clusters; by default all of the namespace")
		cmd.AddCommand(sub)
	}
	return cmd
}

func (m *migrating) run(c *call, origin migration.Origin) error {
	ctx, cancel := context.WithTimeout(c, m.timeout)
	defer cancel()
	config, err := c.config.ToRESTConfig()
	if err != nil {
		return err
	}
	w := &migration.World{Namespace: c.namespace, Origin: origin, Names: c.args, Repositories: m.repositories, Workload: c.workload}
	if w.Client, err = client.New(config, client.Options{Scheme: c.client.Scheme()}); err != nil {
		return fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	if c.selector != "" {
		if w.Clusters, err = metav1.ParseToLabelSelector(c.selector); err != nil {
			return fmt.Errorf("--selector: %w", err)
		}
	}
	steps := w.Back
	if !m.goesBack {
		steps = func(ctx context.Context) ([]migration.Step, error) { return m.takeover(ctx, c, w) }
	}
	todo, err := steps(ctx)
	if err != nil {
		return err
	}
	if m.appliesIt {
		return migration.Run(ctx, todo, func(name string) { fmt.Fprintln(c.Out, name) })
	}
	for _, s := range todo {
		fmt.Fprintln(c.ErrOut, "# --apply:", s.Name)
	}
	return nil
}

// takeover returns the steps of a takeover, and writes the YAML unless they are to be done.
func (m *migrating) takeover(ctx context.Context, c *call, w *migration.World) ([]migration.Step, error) {
	found, err := migration.Gather(ctx, w)
	if err != nil {
		return nil, err
	}
	plans := found.Plans()
	for _, note := range found.Notes {
		fmt.Fprintln(c.ErrOut, "# note:", note)
	}
	for _, problem := range found.Problems {
		fmt.Fprintln(c.ErrOut, "# problem:", problem)
	}
	if m.appliesIt && len(found.Problems) > 0 {
		return nil, errors.New("nothing is done before the problems are solved. Name what is to be moved to leave out the rest")
	}
	if !m.appliesIt {
		documents, err := migration.YAML(plans)
		if err != nil {
			return nil, err
		}
		fmt.Fprint(c.Out, documents)
	}
	return w.Takeover(found, plans), nil
}

// workload returns a client of the workload cluster that a Cluster is.
func (c *call) workload(ctx context.Context, cluster string) (client.Client, error) {
	ca := &addonsv1.ClusterAddon{}
	ca.Namespace, ca.Name, ca.Spec.ClusterName = c.namespace, cluster, cluster
	config, err := observed.Workload(ctx, c.client, ca)
	if err != nil {
		return nil, err
	}
	return observed.NewClient(config)
}
