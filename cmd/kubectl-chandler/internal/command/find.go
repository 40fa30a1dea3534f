// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/observed"
)

// Kinds of what a name may be.
const kindCluster, kindStack, kindAddon = "cluster", "stack", "addon"

// named is an AddonStack or a ClusterAddon, by its place in the fleet, or an add-on.
type named struct {
	kind, namespace, name string
	at                    int
}

// namesOf returns all that have names: clusters, then stacks, then the add-ons of clusters.
func namesOf(f *observed.Fleet) (all []named) {
	var addons []named
	for i := range f.Clusters {
		all = append(all, named{kindCluster, f.Clusters[i].Namespace, f.Clusters[i].Name, i})
		for _, a := range f.Clusters[i].Status.Addons {
			addons = append(addons, named{kind: kindAddon, name: a.Name})
		}
	}
	for i := range f.Stacks {
		all = append(all, named{kindStack, f.Stacks[i].Namespace, f.Stacks[i].Name, i})
	}
	return append(all, addons...)
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

// find returns what an argument names. A name alone is that of a cluster rather than of a stack, and of an add-on last.
func find(f *observed.Fleet, argument string, kinds ...string) (named, error) {
	kinds, name, err := kindsOf(argument, kinds...)
	if err != nil {
		return named{}, err
	}
	all := slices.DeleteFunc(namesOf(f), func(is named) bool { return is.name != name || !slices.Contains(kinds, is.kind) })
	if len(all) == 0 {
		return named{}, fmt.Errorf("nothing here has the name %q, of these: %s", name, strings.Join(kinds, ", "))
	}
	if len(all) > 1 && all[1].kind == all[0].kind && all[1] != all[0] {
		return named{}, fmt.Errorf("%s %s is in several namespaces (%s, %s): name one with -n", all[0].kind, name, all[0].namespace, all[1].namespace)
	}
	return all[0], nil
}
