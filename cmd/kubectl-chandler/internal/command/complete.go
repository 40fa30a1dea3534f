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

// completeFlags gives the flags of a command, and of those below it, their completions.
func (c *call) completeFlags(cmd *cobra.Command) {
	for name, read := range map[string]func() []string{
		"output": func() []string { return outputs }, "generated-values": func() []string { return []string{"keep", "renew"} },
		"context": c.contexts, "namespace": c.namespaces, "addon": c.addonsOfStack, "revision": c.revisionsOfStack, "to-revision": c.revisionsOfStack,
	} {
		if cmd.Flags().Lookup(name) == nil && cmd.PersistentFlags().Lookup(name) == nil {
			continue
		}
		cobra.CheckErr(cmd.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
			if c.begin(args) == nil {
				names = read()
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		}))
	}
	for _, below := range cmd.Commands() {
		c.completeFlags(below)
	}
}

func (c *call) contexts() []string {
	config, _ := c.config.ToRawKubeConfigLoader().RawConfig()
	return slices.Sorted(maps.Keys(config.Contexts))
}

func (c *call) namespaces() (names []string) {
	list := &corev1.NamespaceList{}
	_ = c.client.List(c, list) // what can't be read isn't completed
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// addonsOfStack returns those of the stack that the first argument names, none if it can't be read.
func (c *call) addonsOfStack() (names []string) {
	s := &addonsv1.AddonStack{}
	if len(c.args) > 0 {
		_ = c.read(s, c.args[0])
	}
	for i := range s.Spec.Addons {
		names = append(names, s.Spec.Addons[i].Name)
	}
	return names
}

// revisionsOfStack returns those of the stack that the first argument names, the newest first, none if they can't be read.
func (c *call) revisionsOfStack() (names []string) {
	if len(c.args) == 0 {
		return nil
	}
	if is, err := c.stack(); err == nil {
		for i := range is.revisions {
			names = append(names, is.revisions[i].Name)
		}
	}
	return names
}
