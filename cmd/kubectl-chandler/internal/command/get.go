// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/observed"
)

func (s *session) get() *cobra.Command {
	cmd := &cobra.Command{Use: "get", Short: "Show what is installed on a cluster, from the release record there"}
	kubeconfig := ""
	for use, c := range map[string]struct {
		short string
		text  func(*observed.Release) (string, error)
	}{
		"values":   {"Show the values of an add-on, with strings from Secrets hidden", (*observed.Release).Values},
		"manifest": {"Show the objects of an add-on, with the contents of Secrets hidden", (*observed.Release).Manifest},
		"notes":    {"Show the notes of an add-on's chart", func(r *observed.Release) (string, error) { return r.Notes(), nil }},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: use + " CLUSTER ADDON", Short: c.short, Args: cobra.ExactArgs(2), ValidArgsFunction: s.completeNames,
			Long: c.short + ".\n\nIt reads the workload cluster, by the kubeconfig Secret that you have to be allowed to get, or by --workload-kubeconfig.",
			RunE: func(cmd *cobra.Command, args []string) error {
				release, err := s.release(cmd, kubeconfig, args[0], args[1])
				if err != nil {
					return err
				}
				text, err := c.text(release)
				if err == nil {
					fmt.Fprint(s.Out, text)
				}
				return err
			},
		})
	}
	cmd.PersistentFlags().StringVar(&kubeconfig, "workload-kubeconfig", "", "kubeconfig of the workload cluster; by default the Secret of the cluster")
	return cmd
}

// release reads the newest record of an add-on from its workload cluster.
func (s *session) release(cmd *cobra.Command, kubeconfig, cluster, addon string) (*observed.Release, error) {
	c, err := s.client()
	if err != nil {
		return nil, err
	}
	o, err := s.object(cmd.Context(), c, kindCluster+"/"+cluster)
	if err != nil {
		return nil, err
	}
	ca := o.(*addonsv1.ClusterAddon)
	at := slices.IndexFunc(ca.Status.Addons, func(a addonsv1.AddonStatus) bool { return a.Name == addon })
	if at < 0 {
		return nil, fmt.Errorf("cluster %s has no add-on %s", cluster, addon)
	}
	read := func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", kubeconfig) }
	if kubeconfig == "" {
		read = func() (*rest.Config, error) { return observed.Workload(cmd.Context(), c, ca) }
	}
	config, err := read()
	if err != nil {
		return nil, err
	}
	workload, err := observed.NewClient(config)
	if err != nil {
		return nil, err
	}
	return observed.ReadRelease(cmd.Context(), workload, ca.Status.Addons[at].Namespace, addon)
}
