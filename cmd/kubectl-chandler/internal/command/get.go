// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/masked"
	"github.com/cluster-chandler/chandler/internal/observed"
)

func (c *call) get() *cobra.Command {
	cmd := &cobra.Command{Use: "get", Short: "Show what is installed on a cluster, from the release record there"}
	kubeconfig := ""
	for _, is := range []struct {
		part, short string
		text        func(*masked.Release) (string, error)
	}{
		{"values", "Show the values of an add-on, with strings from Secrets hidden", (*masked.Release).Values},
		{"manifest", "Show the objects of an add-on, with the contents of Secrets hidden", (*masked.Release).Manifest},
		{"notes", "Show the notes of an add-on's chart, with strings from Secrets hidden", (*masked.Release).Notes},
	} {
		read := func() (*masked.Release, error) {
			ca, err := c.cluster(c.args[0])
			if err != nil {
				return nil, err
			}
			return c.release(c, ca, c.args[1], kubeconfig)
		}
		sub := onRead(c, is.part+" CLUSTER ADDON", is.short, cobra.ExactArgs(2), read, func(release *masked.Release) error {
			text, err := is.text(release)
			fmt.Fprint(c.Out, text)
			return err
		})
		sub.Long = is.short + ".\n\nIt reads the workload cluster, by the kubeconfig Secret that you have to be allowed to get, or by --workload-kubeconfig."
		cmd.AddCommand(sub)
	}
	cmd.PersistentFlags().StringVar(&kubeconfig, "workload-kubeconfig", "", "kubeconfig of the workload cluster; by default the Secret of the cluster")
	return cmd
}

// cluster reads a ClusterAddon of the namespace.
func (c *call) cluster(name string) (*addonsv1.ClusterAddon, error) {
	ca := &addonsv1.ClusterAddon{}
	if err := c.client.Get(c, client.ObjectKey{Namespace: c.namespace, Name: name}, ca); err != nil {
		return nil, fmt.Errorf("reading cluster %s: %w", name, err)
	}
	return ca, nil
}

// release reads the newest record of an add-on from its workload cluster, by a kubeconfig file, or by the Secret for "".
func (c *call) release(ctx context.Context, ca *addonsv1.ClusterAddon, addon, kubeconfig string) (*masked.Release, error) {
	at := slices.IndexFunc(ca.Status.Addons, func(a addonsv1.AddonStatus) bool { return a.Name == addon })
	if at < 0 {
		return nil, fmt.Errorf("cluster %s has no add-on %s", ca.Name, addon)
	}
	workload, err := observed.Workload(ctx, c.client, ca, kubeconfig)
	if err != nil {
		return nil, err
	}
	return masked.Read(ctx, workload, ca.Status.Addons[at].Namespace, addon)
}
