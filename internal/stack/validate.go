// SPDX-License-Identifier: Apache-2.0

// Package stack holds what can be said about an AddonStack without asking any cluster: whether its
// spec can be used, which Clusters it selects, and how its revisions are kept.
package stack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/compatibility"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/render"
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
	var problems []Problem
	path := field.NewPath("spec")
	problems = append(problems, validateSelector(spec, path)...)
	if spec.Source != nil {
		problems = append(problems, validateVersion(bundleAddress(spec.Source), path.Child("source"))...)
	}
	problems = append(problems, validateReleases(spec.Addons, path.Child("addons"))...)
	problems = append(problems, validateDependencies(spec.Addons, path.Child("addons"))...)
	for i := range spec.Addons {
		problems = append(problems, validateAddon(&spec.Addons[i], path.Child("addons").Index(i))...)
	}
	return problems
}

// Errors returns the problems as a list of field errors.
func Errors(problems []Problem) field.ErrorList {
	var list field.ErrorList
	for _, p := range problems {
		list = append(list, p.Error)
	}
	return list
}

func validateSelector(spec *addonsv1.AddonStackSpec, path *field.Path) []Problem {
	if spec.ClusterSelector == nil {
		return nil
	}
	if _, err := metav1.LabelSelectorAsSelector(spec.ClusterSelector); err != nil {
		return []Problem{{addonsv1.InvalidSelectorReason,
			field.Invalid(path.Child("clusterSelector"), metav1.FormatLabelSelector(spec.ClusterSelector), err.Error())}}
	}
	return nil
}

// validateReleases finds names that are taken twice: an object may be older than that rule.
func validateReleases(addons []addonsv1.Addon, path *field.Path) []Problem {
	var problems []Problem
	seen := map[string]bool{}
	for i := range addons {
		if seen[addons[i].Name] {
			problems = append(problems, Problem{addonsv1.DuplicateReleaseReason,
				field.Duplicate(path.Index(i).Child("name"), addons[i].Name)})
		}
		seen[addons[i].Name] = true
	}
	return problems
}

func validateDependencies(addons []addonsv1.Addon, path *field.Path) []Problem {
	var problems []Problem
	names := map[string]bool{}
	for i := range addons {
		names[addons[i].Name] = true
	}
	for i := range addons {
		for j, dependency := range addons[i].DependsOn {
			if !isOfAnother(dependency) && !names[dependency] {
				problems = append(problems, Problem{addonsv1.UnknownDependencyReason,
					field.Invalid(path.Index(i).Child("dependsOn").Index(j), dependency, "no add-on of this stack has this name")})
			}
		}
	}
	if cycle := findCycle(addons); cycle != nil {
		i := slices.IndexFunc(addons, func(a addonsv1.Addon) bool { return a.Name == cycle[0] })
		problems = append(problems, Problem{addonsv1.DependencyCycleReason,
			field.Invalid(path.Index(i).Child("dependsOn"), addons[i].DependsOn,
				fmt.Sprintf("the add-ons depend on each other: %s; take one of these dependencies out", strings.Join(cycle, " -> ")))})
	}
	return problems
}

func validateAddon(addon *addonsv1.Addon, path *field.Path) []Problem {
	var problems []Problem
	if addon.Values != nil && !isJSONObject(addon.Values.Raw) {
		problems = append(problems, Problem{addonsv1.InvalidValuesReason,
			field.Invalid(path.Child("values"), field.OmitValueType{}, "values must be a map")})
	}
	if err := render.CheckTemplate(addon.ValuesTemplate); err != nil {
		problems = append(problems, Problem{addonsv1.InvalidValuesReason,
			field.Invalid(path.Child("valuesTemplate"), field.OmitValueType{}, err.Error())})
	}
	at := addonAddress(addon)
	problems = append(problems, validateVersion(at, path.Child(at.kind))...)
	problems = append(problems, validateKubernetesVersions(addon, path)...)
	problems = append(problems, validateConditions(addon.Preconditions, path.Child("preconditions"))...)
	problems = append(problems, validateConditions(addon.Postconditions, path.Child("postconditions"))...)
	problems = append(problems, validateContent(addon, path)...)
	for i := range addon.Readiness {
		if _, err := readiness.Compile(addon.Readiness[i : i+1]); err != nil {
			problems = append(problems, Problem{addonsv1.InvalidReadinessReason,
				field.Invalid(path.Child("readiness").Index(i).Child("expression"), addon.Readiness[i].Expression, err.Error())})
		}
	}
	return problems
}

// validateVersion checks whether a text is a version or a range, which the API server can't.
func validateVersion(at address, path *field.Path) []Problem {
	name, value := "version", *at.version
	if at.bundle != nil && at.bundle.ClusterStack != "" {
		name, value = "clusterStack", at.bundle.ClusterStack
	}
	line, err := lineOf(at)
	if err != nil {
		return []Problem{{addonsv1.InvalidVersionReason, field.Invalid(path.Child(name), value, err.Error())}}
	}
	if line != nil && *at.digest() != "" {
		return []Problem{{addonsv1.InvalidVersionReason, field.Invalid(path.Child(name), value, "a digest is that of one version; name it, or take the digest out")}}
	}
	return nil
}

// validateKubernetesVersions checks whether texts are ranges, which the API server can't.
func validateKubernetesVersions(addon *addonsv1.Addon, path *field.Path) []Problem {
	var problems []Problem
	check := func(path *field.Path, text string) {
		if err := compatibility.Check(text); err != nil {
			problems = append(problems, Problem{addonsv1.InvalidVersionReason, field.Invalid(path, text, err.Error())})
		}
	}
	if l := addon.Lifecycle; l != nil && l.KubernetesVersions != "" {
		check(path.Child("lifecycle", "kubernetesVersions"), l.KubernetesVersions)
	}
	for i, row := range addon.Chart.Versions {
		check(path.Child("chart", "versions").Index(i).Child("kubernetes"), row.Kubernetes)
	}
	return problems
}

func isJSONObject(raw []byte) bool {
	if len(bytes.TrimSpace(raw)) == 0 {
		return true
	}
	var object map[string]json.RawMessage
	return json.Unmarshal(raw, &object) == nil
}
