// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/rendering"
)

var clusterData = map[string]any{
	"Cluster": map[string]any{
		"metadata": map[string]any{"name": "c1", "namespace": "team-a", "labels": map[string]any{"env": "prod"}},
		"spec": map[string]any{
			"replicas": int64(1000000),
			"null":     nil,
			"pods":     []any{"10.0.0.0/16", "10.1.0.0/16"},
		},
	},
	"ControlPlane": map[string]any{"spec": map[string]any{"version": "v1.36.3"}},
}

func TestTemplate(t *testing.T) {
	cases := map[string]struct {
		text, lenient, strict string
		fails                 []string // what a strict error mentions; nil if it does not fail
	}{
		"fields":         {text: `{{ .Cluster.metadata.name }}-{{ .ControlPlane.spec.version }}`, lenient: "c1-v1.36.3", strict: "c1-v1.36.3"},
		"integers":       {text: `{{ .Cluster.spec.replicas }}`, lenient: "1000000", strict: "1000000"},
		"sprig":          {text: `{{ .Cluster.spec.pods | join "," | quote }}`, lenient: `"10.0.0.0/16,10.1.0.0/16"`, strict: `"10.0.0.0/16,10.1.0.0/16"`},
		"dig":            {text: `{{ dig "spec" "no" "x" .Cluster }}`, lenient: "x", strict: "x"},
		"assignment":     {text: `{{ $x := .Cluster.metadata.name }}{{ $x }}`, lenient: "c1", strict: "c1"},
		"range and with": {text: `{{ range .Cluster.spec.pods }}{{ . }};{{ end }}{{ with .Cluster }}{{ .metadata.name }}{{ end }}`, lenient: "10.0.0.0/16;10.1.0.0/16;c1", strict: "10.0.0.0/16;10.1.0.0/16;c1"},
		"a definition":   {text: `{{ define "a" }}<{{ . }}>{{ end }}{{ template "a" .Cluster.metadata.name }}`, lenient: "<c1>", strict: "<c1>"},
		"a missing field": {text: "a: 1\nb: {{ .Cluster.spec.nosuch }}", lenient: "a: 1\nb: <no value>",
			fails: []string{"values:2", ".Cluster.spec.nosuch", `"nosuch"`}},
		"a missing path": {text: "\n\n{{ .Cluster.spec.nosuch.deeper }}", lenient: "\n\n<no value>",
			fails: []string{"values:3", ".Cluster.spec.nosuch.deeper", `"nosuch"`}},
		"a missing root": {text: `{{ .InfraCluster.metadata.name }}`, lenient: "<no value>",
			fails: []string{"values:1", ".InfraCluster", `"InfraCluster"`}},
		"a null": {text: "x\n{{ .Cluster.spec.null }}", lenient: "x\n<no value>",
			fails: []string{"values:2", ".Cluster.spec.null", "has no value"}},
		"an index without result": {text: "{{ if true }}\n{{ index .Cluster.metadata.labels \"no\" }}{{ end }}", lenient: "\n<no value>",
			fails: []string{"values:2", `index .Cluster.metadata.labels "no"`}},
		"a null in a definition": {text: "{{ define \"a\" }}{{ .spec.null }}{{ end }}{{ template \"a\" .Cluster }}", lenient: "<no value>",
			fails: []string{"values:1", ".spec.null"}},
		"the text itself": {text: "a\n# <no value>", lenient: "a\n# <no value>", strict: "a\n# <no value>"},
		"the text made up": {text: "a\n{{ printf \"<%s>\" \"no value\" }}", lenient: "a\n<no value>",
			fails: []string{"values:2", "printf", "has no value"}},
	}
	r := rendering.NewRenderer(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := job.Template{Name: "values", Text: c.text, Data: clusterData}
			got, err := r.Template(t.Context(), req)
			if err != nil || got != c.lenient {
				t.Errorf("lenient: got %q, %v, want %q", got, err, c.lenient)
			}
			req.Strict = true
			got, err = r.Template(t.Context(), req)
			if c.fails != nil {
				rendering.WantReason(t, err, job.ReasonValuesTemplateFailed, c.fails...)
				t.Log(err)
				return
			}
			if err != nil || got != c.strict {
				t.Errorf("strict: got %q, %v, want %q", got, err, c.strict)
			}
		})
	}
}

func TestTemplateFails(t *testing.T) {
	cases := map[string]struct {
		text     string
		mentions []string
	}{
		"syntax":      {"\n{{ if }}", []string{"spec.addons[0].valuesTemplate:2"}},
		"env":         {`{{ env "PATH" }}`, []string{`function "env" not defined`}},
		"expandenv":   {`{{ expandenv "$PATH" }}`, []string{`function "expandenv" not defined`}},
		"names":       {`{{ getHostByName "localhost" }}`, []string{`function "getHostByName" not defined`}},
		"Helm's":      {`{{ toYaml .Cluster }}`, []string{`function "toYaml" not defined`}},
		"below null":  {`{{ .Cluster.spec.null.x }}`, []string{"spec.addons[0].valuesTemplate:1", ".Cluster.spec.null.x"}},
		"fail":        {`{{ fail "no" }}`, []string{"no"}},
		"strict mode": {`{{ chandlerDemandValue "a" nil }}`, []string{"not defined"}},
	}
	r := rendering.NewRenderer(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := r.Template(t.Context(), job.Template{Name: "spec.addons[0].valuesTemplate", Text: c.text, Data: clusterData})
			rendering.WantReason(t, err, job.ReasonValuesTemplateFailed, c.mentions...)
			if strings.Contains(err.Error(), "template: ") {
				t.Errorf("message %q", err)
			}
		})
	}
}

func TestTemplateThatDiffersEachTimeIsRefused(t *testing.T) {
	for _, text := range []string{`{{ randAlpha 20 }}`, "{{ $x := uuidv4 }}", `{{ now | date "2006" }}`, `{{ bcrypt "x" }}`} {
		for _, strict := range []bool{true, false} {
			_, err := rendering.NewRenderer(t).Template(t.Context(), job.Template{Name: "addons[a].valuesTemplate", Text: text, Strict: strict})
			rendering.WantReason(t, err, job.ReasonTemplateNotRepeatable, "addons[a].valuesTemplate", "valuesFrom")
		}
	}
}

func TestNames(t *testing.T) {
	longest := strings.Repeat("a", job.MaxNameBytes)
	for name, tc := range map[string]struct {
		templates, want []string
		reason          string
		mentions        []string
	}{
		"plain names are left alone": {templates: []string{"defaults", "a.b"}, want: []string{"defaults", "a.b"}},
		"each has its place": {
			templates: []string{"defaults", "{{ .Cluster.metadata.name }}-cloud-config", "{{ .Cluster.metadata.labels.env }}"},
			want:      []string{"defaults", "c1-cloud-config", "prod"},
		},
		"functions, and a definition of each": {
			templates: []string{`{{ define "a" }}x{{ end }}{{ template "a" }}`, `{{ define "a" }}y{{ end }}{{ template "a" }}-{{ "UP" | lower }}`},
			want:      []string{"x", "y-up"},
		},
		"whatever a field has is handed on": {templates: []string{"{{ .Cluster.spec.pods | first }}\n"}, want: []string{"10.0.0.0/16\n"}},
		"nothing at all":                    {templates: []string{"{{ if false }}a{{ end }}"}, want: []string{""}},
		"as long as can be":                 {templates: []string{`{{ repeat 1024 "a" }}`}, want: []string{longest}},
		"longer": {
			templates: []string{"a", `{{ repeat 1025 "a" }}`}, reason: job.ReasonOutputTooLarge, mentions: []string{"addons[web].valuesFrom[1].name", "1024 bytes"},
		},
		"a field that isn't there": {
			templates: []string{"a", "{{ .Cluster.metadata.labels.tier }}-x"},
			reason:    job.ReasonValuesTemplateFailed, mentions: []string{"addons[web].valuesFrom[1].name:1", `"tier"`},
		},
		"a field without a value": {
			templates: []string{"{{ .Cluster.spec.null }}"}, reason: job.ReasonValuesTemplateFailed, mentions: []string{"addons[web].valuesFrom[0].name:1", "has no value"},
		},
		"a name of each moment": {
			templates: []string{`x-{{ now | unixEpoch }}`}, reason: job.ReasonTemplateNotRepeatable, mentions: []string{"addons[web].valuesFrom[0].name", "take it out"},
		},
		"a function that isn't there": {
			templates: []string{`{{ env "HOME" }}`}, reason: job.ReasonValuesTemplateFailed, mentions: []string{"addons[web].valuesFrom[0].name", "not defined"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := rendering.NewRenderer(t).Names(t.Context(), job.Names{Field: "addons[web].valuesFrom", Templates: tc.templates, Data: clusterData})
			if tc.reason != "" {
				rendering.WantReason(t, err, tc.reason, tc.mentions...)
				return
			}
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
