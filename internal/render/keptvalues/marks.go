// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"bytes"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/template"

	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// The functions that are put around each template. The names cannot be written in one by accident.
const (
	enterFunc = "chandlerEnterTemplate"
	leaveFunc = "chandlerLeaveTemplate"
)

// MarkTemplates lets the templates of a chart say when they begin and end, as Helm's engine doesn't
// tell a function who calls it. Charts that generate nothing stay as they are.
func (g *Generator) MarkTemplates(ch *chart.Chart) {
	if generates(ch) {
		markTemplatesIn(ch)
	}
}

func generates(ch *chart.Chart) bool {
	for _, file := range ch.Templates {
		for name := range remembered {
			if bytes.Contains(file.Data, []byte(name)) {
				return true
			}
		}
	}
	return slices.ContainsFunc(ch.Dependencies(), generates)
}

func markTemplatesIn(ch *chart.Chart) {
	ch.Templates = slices.Clone(ch.Templates) // a chart shares it with its aliases
	for i, file := range ch.Templates {
		if strings.HasPrefix(path.Base(file.Name), "_") {
			continue // named templates alone are in there
		}
		marked := *file
		name := strconv.Quote(path.Join(ch.ChartFullPath(), file.Name))
		marked.Data = slices.Concat([]byte("{{"+enterFunc+" "+name+"}}"), file.Data, []byte("{{"+leaveFunc+"}}"))
		ch.Templates[i] = &marked
	}
	for _, dependency := range ch.Dependencies() {
		markTemplatesIn(dependency)
	}
}

// MarkFuncs returns the functions that marked templates call.
func (g *Generator) MarkFuncs() template.FuncMap {
	return template.FuncMap{
		enterFunc: func(name string) string {
			g.template = append(g.template, name)
			return ""
		},
		leaveFunc: func() string {
			g.template = g.template[:max(0, len(g.template)-1)]
			return ""
		},
	}
}
