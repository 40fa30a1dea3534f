// SPDX-License-Identifier: Apache-2.0

package render

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestCapabilities(t *testing.T) {
	cases := map[string]struct {
		expression, want string
		used             FactsUsed
	}{
		"nothing asked":     {`"x"`, "x", FactsUsed{}},
		"version":           {`.Capabilities.KubeVersion.Version`, "v1.36.3-gke.1", FactsUsed{KubeVersion: "v1.36.3-gke.1"}},
		"git version":       {`.Capabilities.KubeVersion.GitVersion`, "v1.36.3-gke.1", FactsUsed{KubeVersion: "v1.36.3-gke.1"}},
		"printed":           {`.Capabilities.KubeVersion`, "v1.36.3", FactsUsed{KubeVersion: "v1.36.3-gke.1"}},
		"major and minor":   {`printf "%s.%s" .Capabilities.KubeVersion.Major .Capabilities.KubeVersion.Minor`, "1.36", FactsUsed{KubeVersion: "v1.36.3-gke.1"}},
		"compared":          {`semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version`, "true", FactsUsed{KubeVersion: "v1.36.3-gke.1"}},
		"a group's version": {`.Capabilities.APIVersions.Has "apps/v1"`, "true", FactsUsed{Has: map[string]bool{"apps/v1": true}}},
		"a kind":            {`.Capabilities.APIVersions.Has "apps/v1/Deployment"`, "true", FactsUsed{Has: map[string]bool{"apps/v1/Deployment": true}}},
		"not there": {`.Capabilities.APIVersions.Has "monitoring.coreos.com/v1"`, "false",
			FactsUsed{Has: map[string]bool{"monitoring.coreos.com/v1": false}}},
		"a variable asked twice": {`with $v := .Capabilities.APIVersions }}{{ $v.Has "v1" }}{{ $v.Has "v2" }}{{ end`, "truefalse",
			FactsUsed{Has: map[string]bool{"v1": true, "v2": false}}},
		"the list searched": {`has "v1" .Capabilities.APIVersions`, "true", FactsUsed{APIVersions: hashList([]string{"v1", "apps/v1", "apps/v1/Deployment"})}},
		"the list printed":  {`.Capabilities.APIVersions | join ","`, "apps/v1,apps/v1/Deployment,v1", FactsUsed{APIVersions: hashList([]string{"v1", "apps/v1", "apps/v1/Deployment"})}},
		"all at once": {`.Capabilities | toJson | contains "apps/v1"`, "true",
			FactsUsed{KubeVersion: "v1.36.3-gke.1", APIVersions: hashList([]string{"v1", "apps/v1", "apps/v1/Deployment"})}},
		"Helm": {`.Capabilities.HelmVersion.Version`, HelmVersion, FactsUsed{}},
	}
	now := Facts{KubeVersion: "v1.36.3-gke.1", APIVersions: []string{"v1", "apps/v1", "apps/v1/Deployment"}}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := requestFor(template1(configMap + `data: {a: "{{ ` + c.expression + ` }}"}`))
			req.Facts = now
			result, err := render(t, req)
			if err != nil {
				t.Fatal(err)
			}
			if got := result.Objects[0].Object["data"].(map[string]any)["a"]; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if diff := cmp.Diff(c.used, result.FactsUsed); diff != "" {
				t.Error(diff)
			}
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
		"templates/a.yaml": configMap + `data: {has: '{{ with .Capabilities.APIVersions }}{{ .Has "example.com/v1" }} {{ .Has "example.com/v1/W" }} {{ .Has "example.com/v2" }} {{ .Has "other.com/v1" }}{{ end }}',` +
			` all: '{{ has "example.com/v1" .Capabilities.APIVersions }}'}` + "\n",
	}
	req := requestFor(chartOf(files))
	before, err := render(t, req)
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(before.Objects[0].Object, "data")
	if want := map[string]string{"has": "true true false false", "all": "true"}; !cmp.Equal(data, want) {
		t.Errorf("got %v, want %v", data, want)
	}
	req.Facts.APIVersions = append(slices.Clone(facts.APIVersions), "example.com/v1", "example.com/v1/W")
	if !before.FactsUsed.Holds(req.Facts) {
		t.Error("once they are in the cluster, the answers hold no more")
	}
	after, err := render(t, req)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("once they are in the cluster, it differs:\n%s", diff)
	}
}

func TestFactsHold(t *testing.T) {
	now := Facts{KubeVersion: "v1.36.3", APIVersions: []string{"v1", "apps/v1"}}
	cases := map[string]struct {
		used FactsUsed
		want bool
	}{
		"nothing asked":              {FactsUsed{}, true},
		"the same version":           {FactsUsed{KubeVersion: "v1.36.3"}, true},
		"another version":            {FactsUsed{KubeVersion: "v1.36.2"}, false},
		"still in range":             {FactsUsed{KubeRange: map[string]bool{">=1.30.0": true}}, true},
		"now in range":               {FactsUsed{KubeRange: map[string]bool{">=1.30.0": false}}, false},
		"still there":                {FactsUsed{Has: map[string]bool{"apps/v1": true}}, true},
		"still absent":               {FactsUsed{Has: map[string]bool{"apps/v2": false}}, true},
		"gone":                       {FactsUsed{Has: map[string]bool{"apps/v2": true}}, false},
		"new":                        {FactsUsed{Has: map[string]bool{"apps/v1": false}}, false},
		"the same list, other order": {FactsUsed{APIVersions: hashList([]string{"apps/v1", "v1"})}, true},
		"another list":               {FactsUsed{APIVersions: hashList([]string{"v1"})}, false},
		"the list beside its own":    {FactsUsed{APIVersions: hashList([]string{"v1"}), Own: []string{"apps/v1"}}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.used.Holds(now); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
	if (FactsUsed{}).Holds(Facts{KubeVersion: "no version"}) {
		t.Error("holds for a version that is none")
	}
}

func TestHelmVersionIsThatOfTheModule(t *testing.T) {
	data, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "helm.sh/helm/v4 "+HelmVersion+"\n") {
		t.Errorf("go.mod requires another Helm than %s", HelmVersion)
	}
}
