// SPDX-License-Identifier: Apache-2.0

package command

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/observed"
)

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

// flagNames return what a flag may be, by its name. What can't be read isn't completed.
var flagNames = map[string]func(*call) []string{
	"output":           func(*call) []string { return outputs },
	"generated-values": func(*call) []string { return []string{"keep", "renew"} },
	"context": func(c *call) []string {
		config, _ := c.config.ToRawKubeConfigLoader().RawConfig()
		return slices.Sorted(maps.Keys(config.Contexts))
	},
	"namespace": func(c *call) (names []string) {
		list := &corev1.NamespaceList{}
		_ = c.client.List(c, list)
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names
	},
	"addon": func(c *call) (names []string) {
		for _, a := range ofFirst(c).Spec.Addons {
			names = append(names, a.Name)
		}
		return names
	},
	"revision": revisionNames, "to-revision": revisionNames,
}

// revisionNames returns the revisions of the stack that the first argument names, the newest first.
func revisionNames(c *call) (names []string) {
	for _, r := range ofFirst(c).revisions {
		names = append(names, r.Name)
	}
	return names
}

// ofFirst returns the stack that the first argument names, without anything if it can't be read.
func ofFirst(c *call) *revised {
	if len(c.args) > 0 {
		if is, err := c.stack(); err == nil {
			return is
		}
	}
	return &revised{AddonStack: &addonsv1.AddonStack{}}
}

// completeFlags gives the flags of a command, and of those below it, their completions.
func completeFlags(c *call, cmd *cobra.Command) {
	for name, read := range flagNames {
		if cmd.Flags().Lookup(name) == nil && cmd.PersistentFlags().Lookup(name) == nil {
			continue
		}
		cobra.CheckErr(cmd.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
			if c.begin(args) == nil {
				names = read(c)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		}))
	}
	for _, below := range cmd.Commands() {
		completeFlags(c, below)
	}
}
