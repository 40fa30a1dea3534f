// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Plan is an AddonStack that is to be written. It is paused until all are written.
type Plan struct {
	Stack *addonsv1.AddonStack
	// Releases that it takes over.
	Releases []*Release
	// Secrets have values: those of all clusters, or of one.
	Secrets []*unstructured.Unstructured
	// Clusters are the names of those that get the label which the stack selects; empty if it has another selector.
	Clusters []string

	clusters []string // of the releases, sorted
	isTaken  bool     // an object of it is another release's
}

// maxStackName is how long the name of an AddonStack may be.
const maxStackName = 52

// Plans returns the AddonStacks that the releases become: one for releases that are equal but for their
// values. Their names don't depend on which of them are written.
func (f *Found) Plans() (plans []*Plan) {
	var keys []string
	// siblings counts what comes of a Previous, and of one on a cluster. taken are objects by kind and name, more counts what comes on a cluster.
	groups, siblings, taken, more := map[string][]*Release{}, map[string]int{}, map[string]bool{}, map[string]int{}
	for _, s := range f.Stacks {
		taken["AddonStack "+s.Name] = true
		previous := s.Annotations[previousAnnotation]
		siblings[previous]++
		for _, cluster := range f.selected(s.Spec.ClusterSelector) {
			siblings[previous+" "+cluster]++
		}
	}
	for _, r := range f.Releases {
		key := r.Previous + hashOf(r.Addon)
		if groups[key] == nil {
			keys = append(keys, key)
			siblings[r.Previous]++
		}
		groups[key] = append(groups[key], r)
		siblings[r.Previous+" "+r.Cluster]++
	}
	for _, other := range f.Others {
		siblings[other]++
		taken["AddonStack "+other] = true
	}
	for _, key := range keys {
		first, name := groups[key][0], groups[key][0].Previous
		if siblings[name] > 1 && len(groups[key]) == 1 && siblings[name+" "+first.Cluster] == 1 {
			name += "-" + first.Cluster
		} else if siblings[name] > 1 {
			name += "-" + hashOf(key)
		}
		if len(name) > maxStackName {
			name = strings.TrimRight(name[:maxStackName-9], "-.") + "-" + hashOf(name)
		}
		p := f.plan(name, groups[key])
		objects := []string{"AddonStack " + name}
		for _, secret := range p.Secrets {
			objects = append(objects, "Secret "+secret.GetName())
		}
		for _, object := range objects {
			if taken[object] {
				p.isTaken = true
				f.problem("%s: %s is, or would be, another release's. Leave this one out, and write its AddonStack by hand", first, object)
			}
			taken[object] = true
		}
		plans = append(plans, p)
		for _, r := range groups[key] {
			if more[r.Cluster]++; f.running[r.Cluster]+more[r.Cluster] == stack.MaxOfCluster+1 {
				f.problem("cluster %s would have more than %d AddonStacks. Name what is to be moved, and join AddonStacks into one", r.Cluster, stack.MaxOfCluster)
			}
		}
	}
	return plans
}

// hashOf returns eight hex digits.
func hashOf(value any) string {
	text, _ := json.Marshal(value) // of our own types
	return fmt.Sprintf("%x", sha256.Sum256(text))[:8]
}

// plan returns the AddonStack of releases that are equal.
func (f *Found) plan(name string, releases []*Release) *Plan {
	s := &addonsv1.AddonStack{TypeMeta: metav1.TypeMeta{APIVersion: addonsv1.GroupVersion.String(), Kind: "AddonStack"}}
	s.Namespace, s.Name, s.Labels = f.Namespace, name, map[string]string{originLabel: string(f.Origin)}
	s.Annotations = map[string]string{previousAnnotation: releases[0].Previous, clusterv1.PausedAnnotation: ""}
	p := &Plan{Stack: s, Releases: releases}
	for _, r := range releases {
		p.clusters = append(p.clusters, r.Cluster)
	}
	slices.Sort(p.clusters)
	selected := f.selected(releases[0].Selector)
	if slices.Sort(selected); slices.Equal(selected, p.clusters) {
		s.Spec.ClusterSelector = releases[0].Selector
	} else {
		if f.Origin == Provider && name == releases[0].Previous {
			f.note("AddonStack %s is for the clusters that have the release; HelmChartProxy %s selects others, too", name, name)
		}
		p.Clusters, s.Spec.ClusterSelector = p.clusters, &metav1.LabelSelector{MatchLabels: map[string]string{clusterLabelPrefix + name: string(f.Origin)}}
	}
	s.Spec.Addons = []addonsv1.Addon{releases[0].Addon}
	p.setValues(&s.Spec.Addons[0], releases)
	return p
}

// setValues gives an add-on the values of all releases. What was in clear stays so, if it is the same on all clusters. All
// else is in Secrets, as the records of Helm are.
func (p *Plan) setValues(addon *addonsv1.Addon, releases []*Release) {
	first := releases[0]
	isShown, isTemplate := true, first.Template != ""
	for _, r := range releases {
		isTemplate = isTemplate && r.Template == first.Template
		isShown = isShown && r.Shown != nil && reflect.DeepEqual(r.From, first.From)
	}
	if isTemplate {
		addon.ValuesTemplate, addon.ValuesTemplateMode = first.Template, addonsv1.ValuesTemplateModeLenient
		return
	}
	if isShown {
		addon.ValuesFrom = slices.Clone(first.From)
	}
	var common map[string]any
	all := make([]map[string]any, len(releases))
	for i, r := range releases {
		if all[i] = r.Values; isShown {
			all[i] = r.Shown
		}
		if common = shared(common, all[i]); i == 0 {
			common = all[0]
		}
	}
	below, _ := json.Marshal(common) // it was read from JSON, as all values
	if len(common) > 0 && isShown {
		addon.Values = &apiextensionsv1.JSON{Raw: below}
	} else if len(common) > 0 {
		p.addSecret(addon, "", "", below)
	}
	if slices.ContainsFunc(all, func(values map[string]any) bool { return !record.SameValues(values, common) }) {
		for i, r := range releases {
			whole, _ := json.Marshal(all[i])
			rest, _ := jsonpatch.CreateMergePatch(below, whole) // no field is in both: they are merged in any order
			p.addSecret(addon, "-{{ .Cluster.metadata.name }}", "-"+r.Cluster, rest)
		}
	}
}

// addSecret adds a Secret with values, and refers to it by a name that may have a template.
func (p *Plan) addSecret(addon *addonsv1.Addon, template, middle string, values []byte) {
	text, _ := yaml.JSONToYAML(values)
	ref := addonsv1.ValuesReference{Kind: "Secret", Name: p.Stack.Name + template + "-values"}
	if !slices.Contains(addon.ValuesFrom, ref) {
		addon.ValuesFrom = append(addon.ValuesFrom, ref)
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{addonsv1.DefaultValuesKey: string(text)},
	}}
	secret.SetNamespace(p.Stack.Namespace)
	secret.SetName(p.Stack.Name + middle + "-values")
	secret.SetLabels(map[string]string{originLabel: p.Stack.Labels[originLabel], stackLabel: p.Stack.Name, clusterctlv1.ClusterctlMoveLabel: ""})
	p.Secrets = append(p.Secrets, secret)
}

// YAML returns the Secrets and AddonStacks as people apply them.
func YAML(plans []*Plan) string {
	var all strings.Builder
	printer := &printers.YAMLPrinter{}
	for _, p := range plans {
		_ = printer.PrintObj(p.Stack, &all) // of our own types, into memory
		for _, secret := range p.Secrets {
			_ = printer.PrintObj(secret, &all)
		}
	}
	return all.String()
}
