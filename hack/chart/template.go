// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/test/kustomization"
)

// templateOf returns the template of a mode's objects.
func templateOf(m mode) (string, error) {
	objects, err := kustomization.Build(m.overlay)
	if err != nil {
		return "", err
	}
	changes, used := changesOf(m), map[int]bool{}
	text := &strings.Builder{}
	fmt.Fprintf(text, "{{- if eq $.Values.mode %q }}\n", m.name)
	for _, o := range objects {
		if o.GetKind() == "Namespace" {
			continue // Helm's --create-namespace
		}
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			return "", err
		}
		one := strings.ReplaceAll(string(data), "{{", `{{ "{{" }}`)
		for i, c := range changes {
			if pattern := regexp.MustCompile("(?m)" + c.pattern); (c.kind == "" || c.kind == o.GetKind()) && pattern.MatchString(one) {
				one, used[i] = pattern.ReplaceAllString(one, strings.ReplaceAll(c.text, "$.", "$$.")), true
			}
		}
		text.WriteString(wrapped(o, one))
	}
	for i, c := range changes {
		if !used[i] {
			return "", fmt.Errorf("the overlay has nothing like %s", c.pattern)
		}
	}
	return text.String() + "{{- end }}\n", nil
}

// wrapped returns an object's template with its condition.
func wrapped(o *unstructured.Unstructured, text string) string {
	switch {
	case o.GetKind() == "Issuer":
		return "{{- if not $.Values.certManager.issuerRef }}\n---\n" + text + "{{- end }}\n"
	case strings.HasPrefix(o.GetName(), "chandler-manager-role"): // in each namespace that is managed, or everywhere
		text = regexp.MustCompile(`kind: Cluster(Role\w*)`).ReplaceAllString(text, "kind: {{ if not . }}Cluster{{ end }}$1")
		text = strings.Replace(text, "metadata:\n", "metadata:\n  {{- with . }}\n  namespace: {{ . | quote }}\n  {{- end }}\n", 1)
		return "{{- range default (list \"\") $.Values.namespaces }}\n---\n" + text + "{{- end }}\n"
	}
	return "---\n" + text
}
