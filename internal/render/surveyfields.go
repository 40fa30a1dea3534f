// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// reference is one place of a kustomization that names something else.
type reference struct {
	field   string
	to      string
	base    howOften // it is a directory with a kustomization
	inline  bool     // it may be the content itself
	plugin  bool     // it is the configuration of a plugin
	objects bool     // it has objects
	yaml    bool     // it is YAML, of which kustomize reads each document
}

type howOften int

const (
	never howOften = iota
	sometimes
	always
)

// references are all places where a kustomization names files and directories.
func references(k *types.Kustomization) []reference {
	var all []reference
	list := func(field string, like reference, names ...string) {
		for i, name := range names {
			like.field, like.to = fmt.Sprintf("%s[%d]", field, i), name
			all = append(all, like)
		}
	}
	file := func(field, name string, yaml bool) {
		if name != "" {
			all = append(all, reference{field: field, to: name, yaml: yaml})
		}
	}
	list("resources", reference{base: sometimes, objects: true, yaml: true}, k.Resources...)
	list("bases", reference{base: sometimes, objects: true, yaml: true}, k.Bases...)
	list("components", reference{base: always}, k.Components...)
	list("crds", reference{}, k.Crds...)
	list("configurations", reference{yaml: true}, k.Configurations...)
	plugin := reference{base: sometimes, inline: true, plugin: true, yaml: true}
	list("generators", plugin, k.Generators...)
	list("transformers", plugin, k.Transformers...)
	list("validators", plugin, k.Validators...)
	for i, patch := range k.PatchesStrategicMerge {
		all = append(all, reference{field: fmt.Sprintf("patchesStrategicMerge[%d]", i), to: string(patch), inline: true, yaml: true})
	}
	for i, patch := range k.Patches {
		file(fmt.Sprintf("patches[%d].path", i), patch.Path, true)
	}
	for i, patch := range k.PatchesJson6902 {
		file(fmt.Sprintf("patchesJson6902[%d].path", i), patch.Path, true)
	}
	for i, replacement := range k.Replacements {
		file(fmt.Sprintf("replacements[%d].path", i), replacement.Path, true)
	}
	for i, args := range k.ConfigMapGenerator {
		all = append(all, generated(fmt.Sprintf("configMapGenerator[%d]", i), &args.KvPairSources)...)
	}
	for i, args := range k.SecretGenerator {
		all = append(all, generated(fmt.Sprintf("secretGenerator[%d]", i), &args.KvPairSources)...)
	}
	file("openapi.path", k.OpenAPI["path"], false)
	return all
}

// generated are the files that a ConfigMap or Secret is made of.
func generated(field string, sources *types.KvPairSources) []reference {
	var all []reference
	for i, name := range sources.FileSources {
		if _, file, hasKey := strings.Cut(name, "="); hasKey && !isAddress(name) {
			name = file
		}
		all = append(all, reference{field: fmt.Sprintf("%s.files[%d]", field, i), to: name})
	}
	for i, name := range sources.EnvSources {
		all = append(all, reference{field: fmt.Sprintf("%s.envs[%d]", field, i), to: name})
	}
	if sources.EnvSource != "" {
		all = append(all, reference{field: field + ".env", to: sources.EnvSource})
	}
	return all
}

// chartsOf is the field with Helm charts, "" if there is none: kustomize would run helm for them.
func chartsOf(k *types.Kustomization) string {
	switch {
	case len(k.HelmCharts) > 0:
		return "helmCharts"
	case len(k.HelmChartInflationGenerator) > 0:
		return "helmChartInflationGenerator"
	case k.HelmGlobals != nil:
		return "helmGlobals"
	}
	return ""
}

const noCharts = "charts inside of kustomizations aren't rendered; make the chart an add-on of its own, with patches if it needs them"

// checkPlugins refuses configurations of plugins that aren't built into kustomize.
func (s *survey) checkPlugins(ref reference, data []byte, refuse func(string, ...any) error) error {
	if !ref.plugin {
		return nil
	}
	for _, text := range splitManifests(string(data)) {
		var plugin struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}
		if err := yaml.Unmarshal([]byte(text), &plugin); err != nil {
			return refuse("it is no plugin's configuration: %w", err)
		}
		switch {
		case plugin.Kind == "HelmChartInflationGenerator":
			return refuse(noCharts)
		case plugin.APIVersion != konfig.BuiltinPluginApiVersion:
			return refuse("%s %s is a plugin or a function, and none is run here; only those that are built into kustomize are (apiVersion: %s)",
				plugin.APIVersion, plugin.Kind, konfig.BuiltinPluginApiVersion)
		}
	}
	return nil
}

// account is how kustomize recognizes the user in an address without a scheme.
var account = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*@`)

// isAddress tells whether kustomize would take a name for an address: of a file, or
// of a git repository.
func isAddress(name string) bool {
	lower := strings.ToLower(name)
	for _, prefix := range []string{"git::", "github.com/", "github.com:", "http:", "https:"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	scheme, _, hasScheme := strings.Cut(lower, "://")
	return hasScheme && !strings.ContainsAny(scheme, "/ \n\"'{") || account.MatchString(name)
}

// shownAddress is an address without what may be secret in it.
func shownAddress(address string) string {
	scheme, rest, hasScheme := strings.Cut(address, "://")
	if !hasScheme {
		rest, scheme = address, ""
	}
	rest, _, _ = strings.Cut(rest, "?")
	rest, _, _ = strings.Cut(rest, "#")
	host, _, _ := strings.Cut(rest, "/")
	if at := strings.LastIndex(host, "@"); at >= 0 {
		rest = rest[at+1:]
	}
	if hasScheme {
		rest = scheme + "://" + rest
	}
	return fmt.Sprintf("%.200q", rest)
}
