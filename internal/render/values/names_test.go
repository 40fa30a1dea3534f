// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/rendering"
)

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
			reason:    job.ReasonTemplateFailed, mentions: []string{"addons[web].valuesFrom[1].name:1", `"tier"`},
		},
		"a field without a value": {
			templates: []string{"{{ .Cluster.spec.null }}"}, reason: job.ReasonTemplateFailed, mentions: []string{"addons[web].valuesFrom[0].name:1", "has no value"},
		},
		"a name of each moment": {
			templates: []string{`x-{{ now | unixEpoch }}`}, reason: job.ReasonTemplateNotRepeatable, mentions: []string{"addons[web].valuesFrom[0].name", "take it out"},
		},
		"a function that isn't there": {
			templates: []string{`{{ env "HOME" }}`}, reason: job.ReasonTemplateFailed, mentions: []string{"addons[web].valuesFrom[0].name", "not defined"},
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
