// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestKindComes has somebody install a CRD that a chart asks about, and one that no
// chart does.
func TestKindComes(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 0)
	group := "kinds-" + utilrand.String(5) + ".example.com"
	asking := chart{"templates/text.yaml": configMap("{{ .Release.Name }}",
		`{{ .Capabilities.APIVersions.Has "`+group+`/v1/Thing" | quote }}`)}
	tn.makeCluster("prod", s, nil)
	tn.makeStack("platform", nil,
		tn.addon("asking", tn.writeChart("asking", "1.0.0", asking)),
		tn.addon("settings", tn.writeChart("settings", "1.0.0", configMapChart)))
	tn.startManager()
	tn.awaitReady("platform", "the kind isn't there, and the chart does without")

	makeKind(t, s, "other-"+group, "Other")
	thing := makeKind(t, s, group, "Thing")
	tn.awaitCluster("prod", "the chart is rendered again, with the kind that came", ready("asking", "settings"), installedAs("asking", 2, ""), installedAs("settings", 1, ""))
	tn.Expect(s.textIn(t, tn.namespace, "asking")).To(Equal("true"))

	tn.Expect(s.Delete(t.Context(), thing)).To(Succeed())
	tn.awaitCluster("prod", "and again when the kind goes", ready("asking", "settings"), installedAs("asking", 3, ""), installedAs("settings", 1, ""))
}

// TestClusterScopedKindComesLater has an add-on with a policy, and another one that brings
// the policy's kind. Nobody says which comes first.
func TestClusterScopedKindComesLater(t *testing.T) {
	t.Parallel()
	tn, s := newProd(t, 2)
	group := tn.namespace + ".policies.test"
	engine := chart{"templates/crd.yaml": strings.Join([]string{
		"apiVersion: apiextensions.k8s.io/v1", "kind: CustomResourceDefinition",
		"metadata: {name: 'policies." + group + "'}", "spec:", "  group: '" + group + "'",
		"  names: {kind: Policy, listKind: PolicyList, plural: policies, singular: policy}", "  scope: Cluster",
		"  versions:", "  - name: v1", "    served: true", "    storage: true",
		"    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}", "",
	}, "\n")}
	rules := chart{
		"templates/policy.yaml": "apiVersion: " + group + "/v1\nkind: Policy\nmetadata: {name: no-latest-tags}\nspec: {x: 1}\n",
		"templates/text.yaml":   configMap("rules", "x"),
	}
	tn.install(
		tn.addon("rules", tn.writeChart("rules", "1.0.0", rules)), tn.addon("engine", tn.writeChart("engine", "1.0.0", engine)))
	policy := &unstructured.Unstructured{}
	policy.SetAPIVersion(group + "/v1")
	policy.SetKind("Policy")
	tn.Expect(s.Get(t.Context(), client.ObjectKey{Name: "no-latest-tags"}, policy)).To(Succeed())
}

// makeKind installs a CRD.
func makeKind(t *testing.T, s *server, group, kind string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := definitionOf(group, "v1", kind, apiextensionsv1.NamespaceScoped)
	must.Succeed(t, s.Create(t.Context(), crd))
	return crd
}

// definitionOf returns the CRD of a kind whose objects may have any fields.
func definitionOf(group, version, kind string, scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	singular := strings.ToLower(kind)
	plural := singular + "s"
	if stem, is := strings.CutSuffix(singular, "y"); is {
		plural = stem + "ies"
	}
	crd := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: group, Scope: scope,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: singular},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
		}}},
	}}
	crd.Name = plural + "." + group
	return crd
}

// TestChartThatWantsItsOwnCRDs is installed at once, as with Helm: its CRDs are there before its templates.
func TestChartThatWantsItsOwnCRDs(t *testing.T) {
	t.Parallel()
	tn, s := newProd(t, 2)
	group := tn.namespace + ".example.com"
	asks := fmt.Sprintf(".Capabilities.APIVersions.Has %q", group+"/v1/Widget")
	path := tn.writeChart("widgets", "1.0.0", chart{
		"crds/widgets.yaml": fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, group),
		"templates/check.yaml":  "{{ if not (" + asks + ") }}{{ fail \"no widgets here\" }}{{ end }}\n",
		"templates/widget.yaml": "{{ if " + asks + " }}\napiVersion: " + group + "/v1\nkind: Widget\nmetadata: {name: own}\n{{ end }}\n",
	})
	tn.install(tn.addon("widgets", path))
	tn.poke("prod", "1")
	tn.settle()
	g := NewWithT(t)
	g.Expect(s.release(t, tn.namespace, "widgets").revision).To(Equal(1))
	widget := &unstructured.Unstructured{}
	widget.SetAPIVersion(group + "/v1")
	widget.SetKind("Widget")
	g.Expect(s.Get(t.Context(), tn.key("own"), widget)).To(Succeed())
}

// A Cluster can name any object as its infrastructure. One of a kind that isn't namespaced,
// as an identity of a cloud, may be another team's: it isn't read, whatever the manager may.
func TestObjectsOutsideOfNamespacesAreNotRead(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	const kind = "TestIdentity"
	tn.create(definitionOf(infraGroup, "v1", kind, apiextensionsv1.ClusterScoped))
	identity := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"externalID": "sentinel-of-another-team"}}}
	identity.SetAPIVersion(infraGroup + "/v1")
	identity.SetKind(kind)
	identity.SetName("another-teams-" + tn.namespace)
	poll(t, patience, "the API server is to serve the CRD", func() error { return world.hub.Create(t.Context(), identity.DeepCopy()) })

	tn.allowEverywhere()
	tn.startManager()
	tn.makeCluster("prod", workloadServer(t, 0), nil, func(c *clusterv1.Cluster) {
		c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup, Kind: kind, Name: identity.GetName()}
	})
	tn.makeStack("settings", nil, tn.small("settings", withTemplate(`text: "{{ .InfraCluster.spec.externalID }}"`)))
	tn.awaitCluster("prod", "the object is refused", phase("settings", addonsv1.AddonFailed, "ProviderObjectRefused", kind))
}
