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

// kindsOf returns the kinds that an argument, as name or kind/name, may be of, and the name.
func kindsOf(argument string, kinds ...string) ([]string, string, error) {
	kind, name, ok := strings.Cut(argument, "/")
	if !ok {
		return kinds, argument, nil
	}
	if !slices.Contains(kinds, kind) {
		return nil, "", fmt.Errorf("%s: before the / is to be one of %s; -n names the namespace", argument, strings.Join(kinds, ", "))
	}
	return []string{kind}, name, nil
}

// find returns what an argument names. A name alone is looked for in the order of the kinds.
func find(f *observed.Fleet, argument string, kinds ...string) (found, error) {
	kinds, name, err := kindsOf(argument, kinds...)
	if err != nil {
		return found{}, err
	}
	for _, kind := range kinds {
		is, namespaces := found{}, []string{}
		for i := range f.Clusters {
			if ca := &f.Clusters[i]; kind == kindCluster && ca.Name == name {
				is.cluster, namespaces = ca, append(namespaces, ca.Namespace)
			} else if kind == kindAddon && slices.ContainsFunc(ca.Status.Addons, func(a addonsv1.AddonStatus) bool { return a.Name == name }) {
				is.addon = name
			}
		}
		for i := range f.Stacks {
			if s := &f.Stacks[i]; kind == kindStack && s.Name == name {
				is.stack, namespaces = s, append(namespaces, s.Namespace)
			}
		}
		if len(namespaces) > 1 {
			return found{}, fmt.Errorf("%s %s is in several namespaces (%s): name one with -n", kind, name, strings.Join(namespaces, ", "))
		}
		if is != (found{}) {
			return is, nil
		}
	}
	return found{}, fmt.Errorf("nothing here has the name %q, of these: %s", name, strings.Join(kinds, ", "))
}

// completeNames completes the first argument with the stacks and clusters of the namespace.
func (s *session) completeNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, err := s.call(cmd, args)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	f, err := c.fleet()
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
