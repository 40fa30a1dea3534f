// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/render/chart"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

func TestCapabilities(t *testing.T) {
	cases := map[string]struct {
		expression, want string
		used             job.FactsUsed
	}{
		"nothing asked":     {`"x"`, "x", job.FactsUsed{}},
		"version":           {`.Capabilities.KubeVersion.Version`, "v1.36.3-gke.1", job.FactsUsed{KubeVersion: "v1.36.3-gke.1"}},
		"git version":       {`.Capabilities.KubeVersion.GitVersion`, "v1.36.3-gke.1", job.FactsUsed{KubeVersion: "v1.36.3-gke.1"}},
		"printed":           {`.Capabilities.KubeVersion`, "v1.36.3", job.FactsUsed{KubeVersion: "v1.36.3-gke.1"}},
		"major and minor":   {`printf "%s.%s" .Capabilities.KubeVersion.Major .Capabilities.KubeVersion.Minor`, "1.36", job.FactsUsed{KubeVersion: "v1.36.3-gke.1"}},
		"compared":          {`semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version`, "true", job.FactsUsed{KubeVersion: "v1.36.3-gke.1"}},
		"a group's version": {`.Capabilities.APIVersions.Has "apps/v1"`, "true", job.FactsUsed{Has: map[string]bool{"apps/v1": true}}},
		"a kind":            {`.Capabilities.APIVersions.Has "apps/v1/Deployment"`, "true", job.FactsUsed{Has: map[string]bool{"apps/v1/Deployment": true}}},
		"not there": {`.Capabilities.APIVersions.Has "monitoring.coreos.com/v1"`, "false",
			job.FactsUsed{Has: map[string]bool{"monitoring.coreos.com/v1": false}}},
		"a variable asked twice": {`with $v := .Capabilities.APIVersions }}{{ $v.Has "v1" }}{{ $v.Has "v2" }}{{ end`, "truefalse",
			job.FactsUsed{Has: map[string]bool{"v1": true, "v2": false}}},
		"the list searched": {`has "v1" .Capabilities.APIVersions`, "true", job.FactsUsed{APIVersions: job.HashList([]string{"v1", "apps/v1", "apps/v1/Deployment"})}},
		"the list printed":  {`.Capabilities.APIVersions | join ","`, "apps/v1,apps/v1/Deployment,v1", job.FactsUsed{APIVersions: job.HashList([]string{"v1", "apps/v1", "apps/v1/Deployment"})}},
		"all at once": {`.Capabilities | toJson | contains "apps/v1"`, "true",
			job.FactsUsed{KubeVersion: "v1.36.3-gke.1", APIVersions: job.HashList([]string{"v1", "apps/v1", "apps/v1/Deployment"})}},
		"Helm": {`.Capabilities.HelmVersion.Version`, chart.HelmVersion, job.FactsUsed{}},
	}
	now := job.Facts{KubeVersion: "v1.36.3-gke.1", APIVersions: []string{"v1", "apps/v1", "apps/v1/Deployment"}}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap + `data: {a: "{{ ` + c.expression + ` }}"}`))
			req.Facts = now
			result, err := rendering.Render(t, req)
			must.Succeed(t, err)
			must.Equal[any](t, c.want, result.Objects[0].Object["data"].(map[string]any)["a"])
			must.Equal(t, c.used, result.FactsUsed)
			if !result.FactsUsed.Holds(now) {
				t.Error("does not hold for the same facts")
			}
		})
	}
}

// TestChartSeesItsOwnCRDs asks for what is in crds/, before and after that is in the cluster.
func TestChartSeesItsOwnCRDs(t *testing.T) {
	files := map[string]string{
		"crds/w.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: ws.example.com}\n" +
			"spec: {group: example.com, names: {kind: W}, versions: [{name: v1, served: true}, {name: v2, served: false}]}\n",
		"templates/a.yaml": rendering.ConfigMap + `data: {has: '{{ with .Capabilities.APIVersions }}{{ .Has "example.com/v1" }} {{ .Has "example.com/v1/W" }} {{ .Has "example.com/v2" }} {{ .Has "other.com/v1" }}{{ end }}',` +
			` all: '{{ has "example.com/v1" .Capabilities.APIVersions }}'}` + "\n",
	}
	req := rendering.ChartJob(rendering.ChartOf(files))
	before, err := rendering.Render(t, req)
	must.Succeed(t, err)
	data, _, _ := unstructured.NestedStringMap(before.Objects[0].Object, "data")
	if want := map[string]string{"has": "true true false false", "all": "true"}; !cmp.Equal(data, want) {
		t.Errorf("got %v, want %v", data, want)
	}
	req.Facts.APIVersions = append(slices.Clone(rendering.Facts.APIVersions), "example.com/v1", "example.com/v1/W")
	if !before.FactsUsed.Holds(req.Facts) {
		t.Error("once they are in the cluster, the answers hold no more")
	}
	after, err := rendering.Render(t, req)
	must.Succeed(t, err)
	must.Equal(t, before, after, "once they are in the cluster, it differs")
}

func TestHelmVersionIsThatOfTheModule(t *testing.T) {
	data, err := os.ReadFile("../../../go.mod")
	must.Succeed(t, err)
	if !strings.Contains(string(data), "helm.sh/helm/v4 "+chart.HelmVersion+"\n") {
		t.Errorf("go.mod requires another Helm than %s", chart.HelmVersion)
	}
}
