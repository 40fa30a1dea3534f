// SPDX-License-Identifier: Apache-2.0

// Package stack holds what can be said about an AddonStack without asking any cluster: whether its
// spec can be used, which Clusters it selects, and how its revisions are kept.
package stack

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/compatibility"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/expression"
	"github.com/cluster-chandler/chandler/internal/render/values"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

// Problem is one thing that is wrong with a spec.
type Problem struct {
	// Reason is a reason of the Valid condition.
	Reason string
	// Error names the field, and the way out.
	Error *field.Error
}

// Validate returns what is wrong with the spec beyond what the API server checks. It runs at
// admission and in the controller: an object may have been stored while no webhook was there.
func Validate(spec *addonsv1.AddonStackSpec) []Problem {
	var found problems
	path := field.NewPath("spec")
	found.checkSelector(spec.ClusterSelector, path.Child("clusterSelector"))
	if spec.AllowedRemovals != nil {
		found.checkSelector(spec.AllowedRemovals.ClusterSelector, path.Child("allowedRemovals", "clusterSelector"))
	}
	for _, source := range sourcesOf(spec) {
		found.checkVersion(source)
	}
	if spec.Rollout != nil {
		_, errs := rollout.StrategyOf(spec.Rollout, path.Child("rollout"))
		for _, err := range errs {
			found = append(found, Problem{addonsv1.InvalidRolloutReason, err})
		}
	}
	found.checkNames(spec.Addons, path.Child("addons"))
	refused := expression.CheckTogether(expressionsOf(spec.Addons))
	if refused != "" {
		found.add(addonsv1.InvalidExpressionReason, path.Child("addons"), field.OmitValueType{}, refused)
	}
	for i := range spec.Addons {
		found.checkAddon(&spec.Addons[i], path.Child("addons").Index(i), refused == "")
	}
	return found
}

// problems collects what is wrong.
type problems []Problem

// checkSelector adds that a selector can't be used.
func (p *problems) checkSelector(selector *metav1.LabelSelector, path *field.Path) {
	if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
		p.add(addonsv1.InvalidSelectorReason, path, field.OmitValueType{}, err.Error())
	}
}

// add adds that a field has a value which is invalid.
func (p *problems) add(reason string, path *field.Path, value any, detail string) {
	*p = append(*p, Problem{reason, field.Invalid(path, value, detail)})
}

// checkNames finds names that are taken twice, as an object may be older than that rule, and
// dependencies that can't be met.
func (p *problems) checkNames(addons []addonsv1.Addon, path *field.Path) {
	names := sets.New[string]()
	for i := range addons {
		if names.Has(addons[i].Name) {
			*p = append(*p, Problem{addonsv1.DuplicateReleaseReason, field.Duplicate(path.Index(i).Child("name"), addons[i].Name)})
		}
		names.Insert(addons[i].Name)
	}
	for i := range addons {
		for j, dependency := range addons[i].DependsOn {
			if !isOfAnother(dependency) && !names.Has(dependency) {
				p.add(addonsv1.UnknownDependencyReason, path.Index(i).Child("dependsOn").Index(j), dependency, "no add-on of this stack has this name")
			}
		}
	}
	*p = append(*p, cycleWithin(addons, path)...)
}

func (p *problems) checkAddon(addon *addonsv1.Addon, path *field.Path, compiles bool) {
	if err := values.CheckTemplate(addon.ValuesTemplate); err != nil {
		p.add(addonsv1.InvalidValuesReason, path.Child("valuesTemplate"), field.OmitValueType{}, err.Error())
	}
	for i, ref := range addon.ValuesFrom {
		if err := values.CheckTemplate(ref.Name); err != nil {
			p.add(addonsv1.InvalidValuesReason, path.Child("valuesFrom").Index(i).Child("name"), ref.Name, err.Error())
		}
	}
	p.checkKubernetesVersions(addon, path)
	p.checkContent(addon, path)
	if !compiles {
		return
	}
	p.checkConditions(addon.Preconditions, path.Child("preconditions"))
	p.checkConditions(addon.Postconditions, path.Child("postconditions"))
	for i, check := range addon.Readiness {
		if err := readiness.Verify(check); err != nil {
			p.add(addonsv1.InvalidReadinessReason, path.Child("readiness").Index(i).Child("expression"), check.Expression, err.Error())
		}
	}
}

// checkVersion checks whether a text is a version or a range, which the API server can't.
func (p *problems) checkVersion(of Follower) {
	name, value := "version", *of.version
	if of.Bundle != nil && of.Bundle.ClusterStack != "" {
		name, value = "clusterStack", of.Bundle.ClusterStack
	}
	line, err := of.line()
	switch {
	case err != nil:
		p.add(addonsv1.InvalidVersionReason, of.path.Child(name), value, err.Error())
	case line != nil && *of.source.Digest != "":
		p.add(addonsv1.InvalidVersionReason, of.path.Child(name), value, "a digest is that of one version; name it, or take the digest out")
	}
}

// checkKubernetesVersions checks whether texts are ranges, which the API server can't.
func (p *problems) checkKubernetesVersions(addon *addonsv1.Addon, path *field.Path) {
	check := func(path *field.Path, text string) {
		if err := compatibility.Check(text); err != nil {
			p.add(addonsv1.InvalidVersionReason, path, text, err.Error())
		}
	}
	if l := addon.Lifecycle; l != nil && l.KubernetesVersions != "" {
		check(path.Child("lifecycle", "kubernetesVersions"), l.KubernetesVersions)
	}
	for i, row := range addon.Chart.Versions {
		check(path.Child("chart", "versions").Index(i).Child("kubernetes"), row.Kubernetes)
	}
}
