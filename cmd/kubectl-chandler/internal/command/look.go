// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/origins"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/redacted"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/internal/version"
)

const exitCodes = "\n\nExit code: 0 all is well, 1 something failed, 2 something waits or is on its way, 3 the command failed."

// patience is how long a command waits for notes, which are on a workload cluster.
const patience = 5 * time.Second

func (c *call) status() *cobra.Command {
	watches := false
	cmd := c.command("status", "Show how all stacks and clusters are, and what is wrong", cobra.NoArgs, func() error {
		return c.again(watches, func() (ends bool, _ error) {
			f, err := c.fleet()
			if err != nil {
				return false, err
			}
			status := summary.StatusOf(f, c.selector != "")
			c.verdict = status.Verdict()
			return false, c.print("Status", status, "Status", status)
		})
	})
	cmd.Long = "Show how all stacks and clusters are, and what is wrong: each cause once, with its clusters." + exitCodes
	cmd.Flags().StringVarP(&c.selector, "selector", "l", "", "labels of the AddonStacks to show")
	cmd.Flags().BoolVarP(&watches, "watch", "w", false, "show it again after each change")
	return c.inAllNamespaces(cmd)
}

// pause is between two looks at a fleet that changes.
const pause = 2 * time.Second

// again shows something once, or with watches after each change, until it is at its end.
func (c *call) again(watches bool, show func() (ends bool, _ error)) error {
	if !watches {
		_, err := show()
		return err
	}
	err := observed.Follow(c, c.client, c.namespace, pause, func() error {
		ends, err := show()
		if err == nil && ends {
			err = errEnds
		}
		fmt.Fprintln(c.Out)
		return err
	})
	if errors.Is(err, errEnds) {
		return nil
	}
	return err
}

var errEnds = errors.New("it is at its end")

func (c *call) why() *cobra.Command {
	cmd := onRead(c, "why NAME | cluster/NAME | stack/NAME | addon/NAME", "Show why a cluster, a stack or an add-on is as it is, and the way out",
		cobra.ExactArgs(1), c.fleet, func(f *observed.Fleet) error {
			is, err := find(f, c.args[0], kindCluster, kindStack, kindAddon)
			if err != nil {
				return err
			}
			var why *summary.Status
			switch is.kind {
			case kindCluster:
				cluster := summary.ClusterOf(f, &f.Clusters[is.at])
				c.verdict = cluster.Verdict()
				return c.print("Cluster", cluster, "Cluster", cluster)
			case kindStack:
				why = summary.StackStatus(f, &f.Stacks[is.at])
			default:
				why = summary.AddonStatus(f, is.name)
				why.Notes = notesOf(c, c.client, f, is.name)
			}
			c.verdict = why.Verdict()
			return c.print("Status", why, "Why", why)
		})
	cmd.Long = "Show why a cluster, a stack or an add-on is as it is, and the way out. A name alone is looked for in this order.\n" +
		"Of an add-on, it shows the notes of the chart, too, if you may read the kubeconfig of a cluster on which it is Ready." + exitCodes
	return c.inAllNamespaces(cmd)
}

// notesOf returns the notes of an add-on's chart, from the first cluster on which it is Ready. They are nil if there are
// none, or the user can't read them there.
func notesOf(ctx context.Context, management client.Reader, f *observed.Fleet, addon string) *summary.Notes {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	isReady := func(a addonsv1.AddonStatus) bool { return a.Name == addon && a.Phase == addonsv1.AddonReady }
	at := slices.IndexFunc(f.Clusters, func(ca addonsv1.ClusterAddon) bool { return slices.ContainsFunc(ca.Status.Addons, isReady) })
	if at < 0 {
		return nil
	}
	release, err := releaseOf(ctx, management, &f.Clusters[at], addon, "")
	if err != nil {
		return nil
	}
	text, _ := release.Notes() // they are a string of the record
	return &summary.Notes{Cluster: f.Clusters[at].Name, Text: text}
}

func (c *call) tree() *cobra.Command {
	return onRead(c, "tree STACK", "Show the add-ons of a stack by what they depend on, with the clusters that aren't ready", cobra.ExactArgs(1),
		c.fleet, func(f *observed.Fleet) error {
			is, err := find(f, c.args[0], kindStack)
			if err != nil {
				return err
			}
			tree := &summary.StackStatus(f, &f.Stacks[is.at]).Stacks[0]
			return c.print("Tree", tree, "Tree", tree)
		})
}

func (c *call) version() *cobra.Command {
	only := false
	cmd := &cobra.Command{Use: "version", Short: "Show the versions of this command and of all instances", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		f, err := &observed.Fleet{}, error(nil)
		if !only {
			if err = c.begin(nil); err == nil {
				err = f.ReadInstances(c, c.client)
			}
		}
		is := &summary.Versions{Client: version.String(), Instances: f.Instances}
		return errors.Join(c.print("Version", is, "Version", is), err)
	}}
	cmd.Flags().BoolVar(&only, "client", false, "show the version of this command alone")
	return cmd
}

func (c *call) get() *cobra.Command {
	cmd := group("get", "Show what is installed on a cluster, from the release record there")
	kubeconfig, withOrigins := "", false
	for _, is := range []struct {
		part, short string
		text        func(*redacted.Release) (string, error)
	}{
		{"values", "Show the values of an add-on, with strings from Secrets hidden", (*redacted.Release).Values},
		{"manifest", "Show the objects of an add-on, with the contents of Secrets hidden", (*redacted.Release).Manifest},
		{"notes", "Show the notes of an add-on's chart, with strings from Secrets hidden", (*redacted.Release).Notes},
	} {
		ca := &addonsv1.ClusterAddon{}
		read := func() (*redacted.Release, error) {
			if err := errors.Join(c.check(), c.read(ca, c.args[0])); err != nil {
				return nil, err
			}
			return releaseOf(c, c.client, ca, c.args[1], kubeconfig)
		}
		sub := onRead(c, is.part+" CLUSTER ADDON", is.short, cobra.ExactArgs(2), read, func(release *redacted.Release) error {
			if withOrigins {
				others, err := c.everyKind()
				if err != nil {
					return err
				}
				is := origins.Reader{Client: c.client, Others: others, Cluster: ca}.Of(c, release, c.args[1])
				return c.print("Origins", is, "Origins", is)
			}
			text, err := is.text(release)
			if err == nil && c.output == "json" {
				text, err = asJSON(is.part, text)
			}
			fmt.Fprint(c.Out, printing.Clean(text))
			return err
		})
		sub.Long = is.short + ".\n\nIt reads the workload cluster, by the kubeconfig Secret that you have to be allowed to get, or by --workload-kubeconfig."
		if is.part == "values" {
			sub.Flags().BoolVar(&withOrigins, "origins", false, "show of each value, and of the chart's defaults, where it is from")
		}
		cmd.AddCommand(sub)
	}
	cmd.PersistentFlags().StringVar(&kubeconfig, "workload-kubeconfig", "", "kubeconfig of the workload cluster; by default the Secret of the cluster")
	return cmd
}

// asJSON returns values, the objects of a manifest as a List, or other text, as JSON.
func asJSON(part, text string) (string, error) {
	is, err := any(text), error(nil)
	switch part {
	case "values":
		err = yaml.Unmarshal([]byte(text), &is)
	case "manifest":
		var objects []*unstructured.Unstructured
		objects, err = record.ParseManifest(text)
		is = map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}
	}
	data, other := json.MarshalIndent(is, "", "    ")
	return printing.Escape(string(data)) + "\n", errors.Join(err, other)
}

// releaseOf reads the newest record of an add-on from its workload cluster, by a kubeconfig file, or by the Secret for "".
func releaseOf(ctx context.Context, management client.Reader, ca *addonsv1.ClusterAddon, addon, kubeconfig string) (*redacted.Release, error) {
	at := slices.IndexFunc(ca.Status.Addons, func(a addonsv1.AddonStatus) bool { return a.Name == addon })
	if at < 0 {
		return nil, fmt.Errorf("cluster %s has no add-on %s", ca.Name, addon)
	}
	workload, err := observed.Workload(ctx, management, ca, kubeconfig)
	if err != nil {
		return nil, err
	}
	return redacted.Read(ctx, workload, ca.Status.Addons[at].Namespace, addon)
}
