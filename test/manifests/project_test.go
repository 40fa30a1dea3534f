// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/test/must"
)

// listed is a resource of PROJECT.
type listed struct {
	Domain, Group, Kind, Version string
	Controller, External         bool
	Webhooks                     struct{ Validation, Conversion bool }
}

// TestProjectListsAll compares PROJECT with CRDs, webhooks and controllers.
func TestProjectListsAll(t *testing.T) {
	var project struct{ Resources []listed }
	data, err := os.ReadFile(filepath.Join(root, "PROJECT"))
	must.Succeed(t, err)
	must.Succeed(t, yaml.Unmarshal(data, &project))
	got := map[string]string{}
	for _, r := range project.Resources {
		traits := []string{r.Kind}
		for trait, has := range map[string]bool{"controller": r.Controller, "conversion": r.Webhooks.Conversion, "external": r.External, "validation": r.Webhooks.Validation} {
			if has {
				traits = append(traits, trait)
			}
		}
		slices.Sort(traits[1:])
		got[strings.ToLower(r.Kind)+"s."+r.Group+"."+r.Domain+"/"+r.Version] = strings.Join(traits, " ")
	}
	want := wantedInProject(t)
	if !maps.Equal(got, want) {
		t.Errorf("PROJECT lists\n%v\nand there are\n%v", got, want)
	}
}

// wantedInProject returns kinds and their traits by resource and version.
func wantedInProject(t *testing.T) map[string]string {
	t.Helper()
	kinds, traits := map[string]string{}, map[string][]string{}
	files, err := filepath.Glob(filepath.Join(root, "config/crd/bases/*.yaml"))
	must.Succeed(t, err)
	for _, file := range files {
		var crd apiextensionsv1.CustomResourceDefinition
		data, err := os.ReadFile(file)
		must.Succeed(t, err)
		must.Succeed(t, yaml.Unmarshal(data, &crd))
		for _, version := range crd.Spec.Versions {
			name := crd.Name + "/" + version.Name
			kinds[name] = crd.Spec.Names.Kind
			if hasController(t, version.Name, crd.Spec.Names.Kind) {
				traits[name] = append(traits[name], "controller")
			}
			if !version.Storage {
				traits[name] = append(traits[name], "conversion")
			}
		}
	}
	var hooks admissionv1.ValidatingWebhookConfiguration
	data, err := os.ReadFile(filepath.Join(root, "config/webhook/manifests.yaml"))
	must.Succeed(t, err)
	must.Succeed(t, yaml.Unmarshal(data, &hooks))
	for _, hook := range hooks.Webhooks {
		rule := hook.Rules[0]
		name := rule.Resources[0] + "." + rule.APIGroups[0] + "/" + rule.APIVersions[0]
		if kinds[name] == "" {
			kinds[name] = strings.ToUpper(rule.Resources[0][:1]) + strings.TrimSuffix(rule.Resources[0], "s")[1:]
			traits[name] = append(traits[name], "external")
		}
		traits[name] = append(traits[name], "validation")
	}
	for name, kind := range kinds {
		kinds[name] = strings.Join(append([]string{kind}, traits[name]...), " ")
	}
	return kinds
}

// hasController reports whether a setup in controllers is for a kind.
func hasController(t *testing.T, version, kind string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "controllers/*/*.go"))
	must.Succeed(t, err)
	return version == "v1beta1" && slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		must.Succeed(t, err)
		return strings.Contains(string(text), "For(&addonsv1."+kind+"{}") ||
			strings.Contains(string(text), "Watches(&addonsv1."+kind+"{}, all)")
	})
}
