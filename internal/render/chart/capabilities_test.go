// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"context"
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
			result := rendering.MustRender(t, req)
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
	before := rendering.MustRender(t, req)
	data, _, _ := unstructured.NestedStringMap(before.Objects[0].Object, "data")
	if want := map[string]string{"has": "true true false false", "all": "true"}; !cmp.Equal(data, want) {
		t.Errorf("got %v, want %v", data, want)
	}
	req.Facts.APIVersions = append(slices.Clone(rendering.Facts.APIVersions), "example.com/v1", "example.com/v1/W")
	if !before.FactsUsed.Holds(req.Facts) {
		t.Error("once they are in the cluster, the answers hold no more")
	}
	after := rendering.MustRender(t, req)
	must.Equal(t, before, after, "once they are in the cluster, it differs")
}

func TestHelmVersionIsThatOfTheModule(t *testing.T) {
	data, err := os.ReadFile("../../../go.mod")
	must.Succeed(t, err)
	if !strings.Contains(string(data), "helm.sh/helm/v4 "+chart.HelmVersion+"\n") {
		t.Errorf("go.mod requires another Helm than %s", chart.HelmVersion)
	}
}

// cluster answers lookups from objects by their names, and counts its calls.
type cluster struct {
	objects map[string]map[string]any
	calls   int
}

func (c *cluster) lookup(_ context.Context, asked []job.Lookup) ([]job.LookupAnswer, error) {
	c.calls++
	var answers []job.LookupAnswer
	for _, a := range asked {
		answers = append(answers, job.LookupAnswer{Lookup: a, Object: c.objects[a.Name]})
	}
	return answers, nil
}

func TestLookupsAreAskedForOnlyWhereThereAreSome(t *testing.T) {
	const found = `{{ (lookup "v1" "Secret" "a" "one").data.next | default "nothing" | b64dec }}`
	for name, c := range map[string]struct {
		template string
		calls    int
		value    string
	}{
		"none":                {template: "text", calls: 0, value: "text"},
		"one":                 {template: found, calls: 1, value: "two"},
		"one that leads on":   {template: `{{ with lookup "v1" "Secret" "a" "one" }}{{ (lookup "v1" "Secret" "a" (.data.next | b64dec)).data.end | b64dec }}{{ end }}`, calls: 2, value: "end"},
		"what nobody has":     {template: `{{ (lookup "v1" "Secret" "a" "three").data | default "nothing" }}`, calls: 1, value: "nothing"},
		"a chart that fails":  {template: `{{ (required "no password" (lookup "v1" "Secret" "a" "one").data).next | b64dec }}`, calls: 1, value: "two"},
		"one that is changed": {template: `{{ $x := set (lookup "v1" "Secret" "a" "one") "data" 1 }}` + found, calls: 1, value: "two"},
	} {
		t.Run(name, func(t *testing.T) {
			live := &cluster{objects: map[string]map[string]any{"one": rendering.SecretWith("one", "next", "two"), "two": rendering.SecretWith("two", "end", "end")}}
			req := rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap + "data: {value: '" + c.template + "'}\n"))
			req.Lookup = live.lookup
			result, err := rendering.NewRenderer(t).Chart(t.Context(), req)
			must.Succeed(t, err)
			value, _, _ := unstructured.NestedString(result.Objects[0].Object, "data", "value")
			if value != c.value || live.calls != c.calls {
				t.Errorf("got %q after %d calls, want %q after %d", value, live.calls, c.value, c.calls)
			}
		})
	}
}

func TestLookupsAreBounded(t *testing.T) {
	endless := &cluster{objects: map[string]map[string]any{}}
	for i := range 10 {
		name := strings.Repeat("a", i+1)
		endless.objects[name] = rendering.SecretWith(name, "next", name+"a")
	}
	nested := rendering.ConfigMap + `{{ $name := "a" }}{{ range until 12 }}{{ $name = (lookup "v1" "Secret" "" $name).data.next | default "" | b64dec }}{{ end }}` + "\n"
	many := rendering.ConfigMap + `{{ range until 1001 }}{{ lookup "v1" "Secret" "" (print .) }}{{ end }}` + "\n"
	for _, text := range []string{nested, many} {
		req := rendering.ChartJob(rendering.ChartWith(text))
		req.Lookup = endless.lookup
		_, err := rendering.NewRenderer(t).Chart(t.Context(), req)
		rendering.WantReason(t, err, job.ReasonTemplateFailed, "lookup")
	}
}

func TestWhatLookupFindsInSecretsIsHidden(t *testing.T) {
	live := &cluster{objects: map[string]map[string]any{"one": rendering.SecretWith("one", "password", "hunter2hunter2")}}
	req := rendering.ChartJob(rendering.ChartWith(`{{ fail (print "it is " ((lookup "v1" "Secret" "a" "one").data.password | default "" | b64dec)) }}`))
	req.Lookup = live.lookup
	_, err := rendering.NewRenderer(t).Chart(t.Context(), req)
	rendering.WantReason(t, err, job.ReasonTemplateFailed, "[hidden]")
	if strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}
