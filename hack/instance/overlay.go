// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path"
	"strings"
)

const header = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"

// overlay returns the files of the overlay, by their names in its folder. base is where
// config/instance is, as seen from there.
func (a answers) overlay(base string) map[string]string {
	rights := []string{in(base, 0, "rights-everywhere")}
	files := map[string]string{
		"manager/kustomization.yaml": fmt.Sprintf("# The namespace that the instance runs in.\n%snamespace: %s\nresources: [%s]\n",
			header, a.namespace(), in(base, 1, "manager")),
	}
	if !a.everywhere() {
		rights = nil
		for _, namespace := range a.Namespaces {
			folder := path.Join("namespaces", namespace)
			rights = append(rights, folder)
			files[path.Join(folder, "kustomization.yaml")] = fmt.Sprintf("# A namespace that the instance looks after.\n%snamespace: %q\nresources: [%s]\n",
				header, namespace, in(base, 2, "rights"))
		}
	}
	files["kustomization.yaml"] = fmt.Sprintf(`# %s
%snameSuffix: "-%s"
labels:
- {pairs: {cluster.x-k8s.io/provider: addon-chandler, app.kubernetes.io/instance: %q}, includeSelectors: true}
resources: [%s]
components: [%s]
patches:
- target: {kind: Deployment}
  patch: |
    kind: Deployment
    metadata: {name: any}
    spec: {template: {spec: {containers: [{name: manager, env: [%s]}]}}}
`, a.description(), header, a.Name, a.Name, strings.Join(append([]string{"manager"}, rights...), ", "), in(base, 0, "subjects"), strings.Join(a.env(), ", "))
	return files
}

// env is the scope, as config/manager passes it on to flags.
func (a answers) env() []string {
	var env []string
	if !a.everywhere() {
		env = append(env, fmt.Sprintf("{name: NAMESPACES, value: %q}", strings.Join(a.Namespaces, ",")))
	}
	if a.Filter != "" {
		env = append(env, fmt.Sprintf("{name: WATCH_FILTER, value: %q}", a.Filter))
	}
	return env
}

func (a answers) description() string {
	var where string
	switch {
	case a.everywhere():
		where = "all namespaces"
	case len(a.Namespaces) == 1:
		where = "namespace " + a.Namespaces[0]
	default:
		where = fmt.Sprintf("%d namespaces", len(a.Namespaces))
	}
	if a.Filter == "" {
		return "An instance that looks after " + where + "."
	}
	return fmt.Sprintf("An instance that looks after what has the label\n# cluster.x-k8s.io/watch-filter: %s, in %s.", a.Filter, where)
}

// in is a part of config/instance, as seen from a folder so many levels below the
// overlay's.
func in(base string, depth int, part string) string {
	if !remote(base) {
		return strings.Repeat("../", depth) + path.Join(base, part)
	}
	address, query, found := strings.Cut(base, "?")
	address = strings.TrimSuffix(address, "/") + "/" + part
	if found {
		address += "?" + query
	}
	return address
}

// remote tells an address from a folder, as kustomize's documentation has them.
func remote(base string) bool {
	return strings.Contains(base, "//") || strings.HasPrefix(base, "github.com/") || strings.HasPrefix(base, "git@")
}
