// SPDX-License-Identifier: Apache-2.0

package e2e

import "strings"

// crashingChart has what an installation has to get right in several steps: a
// CRD with an object of it, ConfigMaps of which some come and go, a Deployment,
// and hooks. The CRD is named after the namespace, as it is for the whole cluster.
func crashingChart(generation, namespace string) chart {
	only := "only-in-" + generation
	return chart{
		// Not a template: Helm installs what is in crds/ as it is, and leaves it.
		"crds/gadgets.yaml": strings.Join([]string{
			"apiVersion: apiextensions.k8s.io/v1", "kind: CustomResourceDefinition",
			"metadata: {name: gadgets." + namespace + ".chandler.test}",
			"spec:",
			"  group: " + namespace + ".chandler.test",
			"  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}",
			"  scope: Namespaced",
			"  versions:",
			"  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}",
		}, "\n"),
		"templates/crd.yaml": strings.Join([]string{
			"apiVersion: apiextensions.k8s.io/v1", "kind: CustomResourceDefinition",
			"metadata: {name: 'things.{{ .Release.Namespace }}.chandler.test'}",
			"spec:",
			"  group: '{{ .Release.Namespace }}.chandler.test'",
			"  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}",
			"  scope: Namespaced",
			"  versions:",
			"  - name: v1",
			"    served: true",
			"    storage: true",
			"    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}",
		}, "\n"),
		"templates/thing.yaml": strings.Join([]string{
			"apiVersion: '{{ .Release.Namespace }}.chandler.test/v1'", "kind: Thing",
			"metadata: {name: thing}", "spec: {generation: " + generation + "}",
		}, "\n"),
		"templates/both.yaml":         configMap("in-both", generation),
		"templates/same.yaml":         configMap("always-the-same", "same"),
		"templates/only.yaml":         configMap(only, generation),
		"templates/deploy.yaml":       deployment("web", generation),
		"templates/pre-install.yaml":  hookJob("pre-install"),
		"templates/post-install.yaml": hookJob("post-install"),
		"templates/pre-upgrade.yaml":  hookJob("pre-upgrade"),
		"templates/post-upgrade.yaml": strings.Replace(hookJob("post-upgrade"), "annotations: {", "annotations: {helm.sh/hook-delete-policy: hook-succeeded, ", 1),
		"templates/post-delete.yaml":  hookJob("post-delete"),
	}
}

func deployment(name, image string, podAnnotations ...string) string {
	return strings.Join([]string{
		"apiVersion: apps/v1", "kind: Deployment", "metadata: {name: " + quoted(name) + "}",
		"spec:",
		"  replicas: 1",
		"  selector: {matchLabels: {app: " + quoted(name) + "}}",
		"  template:",
		"    metadata: {labels: {app: " + quoted(name) + "}, annotations: {" + strings.Join(podAnnotations, ", ") + "}}",
		"    spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: 'example.test/" + name + ":" + image + "'}]}",
	}, "\n")
}

// hookJob is a Job of a hook. It stays when it is done, so that its runs can be
// counted; kwok lets its pod complete.
func hookJob(hook string, podAnnotations ...string) string {
	return strings.Join([]string{
		"apiVersion: batch/v1", "kind: Job",
		"metadata:",
		"  name: " + hook,
		"  labels: {hook: " + hook + "}",
		"  annotations: {helm.sh/hook: " + hook + "}",
		"spec:",
		"  backoffLimit: 0",
		"  template:",
		"    metadata: {annotations: {" + strings.Join(podAnnotations, ", ") + "}}",
		"    spec: {restartPolicy: Never, containers: [{name: main, image: 'example.test/hook:1'}]}",
	}, "\n")
}
