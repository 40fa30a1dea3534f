// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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

// completeNames completes an argument with the names of what the command's use calls it: of stacks, clusters, add-ons or waves.
func (c *call) completeNames(cmd *cobra.Command, args []string, typed string) (names []string, _ cobra.ShellCompDirective) {
	places := placesOf(cmd.Use, len(args))
	if len(args) >= len(places) || c.begin(nil) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	f, _ := c.fleet() // what can't be read isn't completed
	kind, _, isKind := strings.Cut(typed, "/")
	for _, is := range namesOf(f) {
		switch place := strings.Trim(places[len(args)], "[]"); {
		case isKind && kind == is.kind:
			names = append(names, kind+"/"+is.name)
		case isKind, place == "STACK" && is.kind == kindAddon, place == "NAME" && is.kind == kindAddon:
		case place == "NAME", place == "STACK" && (is.kind == kindStack || strings.Contains(cmd.Use, "cluster/")), place == "CLUSTER" && is.kind == kindCluster:
			names = append(names, is.name)
		case len(args) > 0 && is.name == args[0]:
			names = append(names, namesWithin(f, is, place)...)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// placesOf returns what a use calls its arguments. The last one may come more often: for each of the arguments that there are.
func placesOf(use string, args int) []string {
	places := strings.Fields(use)[1:]
	repeats := len(places) > 1 && places[len(places)-1] == "..."
	if at := slices.Index(places, "|"); at >= 0 { // arguments of several kinds
		places = places[:at]
	} else if repeats {
		places = places[:len(places)-1]
	}
	if repeats {
		places = slices.Concat(places, slices.Repeat(places[len(places)-1:], args))
	}
	return places
}

// namesWithin returns the names of the add-ons of a cluster, or of the waves of a stack.
func namesWithin(f *observed.Fleet, is named, place string) (names []string) {
	switch {
	case place == "ADDON" && is.kind == kindCluster:
		for _, a := range f.Clusters[is.at].Status.Addons {
			names = append(names, a.Name)
		}
	case place == "WAVE" && is.kind == kindStack && f.Stacks[is.at].Status.Rollout != nil:
		for _, wave := range f.Stacks[is.at].Status.Rollout.Waves {
			names = append(names, wave.Name)
		}
	}
	return names
}
