// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/observed"
)

// Kinds of what a name may be.
const (
	kindCluster = "cluster"
	kindStack   = "stack"
	kindAddon   = "addon"
)

// found is one of these, by its name.
type found struct {
	cluster *addonsv1.ClusterAddon
	stack   *addonsv1.AddonStack
	addon   string
}

// find returns what a name, or kind/name, is of the given kinds. A name alone is looked for in their order.
func find(f *observed.Fleet, name string, kinds ...string) (found, error) {
	wanted := kinds
	if kind, rest, ok := strings.Cut(name, "/"); ok {
		if !slices.Contains(kinds, kind) {
			return found{}, fmt.Errorf("%s: the kind is to be one of %s; -n names the namespace", name, strings.Join(kinds, ", "))
		}
		wanted, name = []string{kind}, rest
	}
	for _, kind := range wanted {
		is, namespaces := found{}, []string{}
		switch kind {
		case kindCluster:
			for i := range f.Clusters {
				if f.Clusters[i].Name == name {
					is.cluster, namespaces = &f.Clusters[i], append(namespaces, f.Clusters[i].Namespace)
				}
			}
		case kindStack:
			for i := range f.Stacks {
				if f.Stacks[i].Name == name {
					is.stack, namespaces = &f.Stacks[i], append(namespaces, f.Stacks[i].Namespace)
				}
			}
		case kindAddon:
			if slices.ContainsFunc(f.Clusters, func(ca addonsv1.ClusterAddon) bool { return hasAddon(&ca, name) }) {
				is.addon = name
			}
		}
		if len(namespaces) > 1 {
			return found{}, fmt.Errorf("%s %s is in several namespaces (%s): name one with -n", kind, name, strings.Join(namespaces, ", "))
		}
		if is != (found{}) {
			return is, nil
		}
	}
	return found{}, fmt.Errorf("no %s has the name %q here", strings.Join(wanted, ", no "), name)
}

func hasAddon(ca *addonsv1.ClusterAddon, name string) bool {
	return slices.ContainsFunc(ca.Status.Addons, func(a addonsv1.AddonStatus) bool { return a.Name == name })
}

// completeNames completes the first argument: stacks and clusters of the namespace.
func (s *session) completeNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	f, err := s.read(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for i := range f.Stacks {
		names = append(names, f.Stacks[i].Name)
	}
	for i := range f.Clusters {
		names = append(names, f.Clusters[i].Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
