// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestRevisions changes each kind of input: what an add-on uses makes exactly
// one new Helm revision, anything else none.
func TestRevisions(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 1)
	v1, v2 := tn.writeChart("settings", "1.0.0", configMapChart), tn.writeChart("settings", "2.0.0", configMapChart)
	installInfraClusterCRD(t)
	infra := tn.infraCluster("prod", "eu-1")
	tn.create(infra)
	tn.create(tn.secret("values", map[string]string{"values.yaml": "fromSecret: one\n", "other": "x"}))
	tn.create(tn.configMapWithChart("packed", configMapChart.archive("packed", "1.0.0")))
	tn.makeCluster("prod", s, labels("env=prod", "tier=one"), func(c *clusterv1.Cluster) {
		c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup, Kind: infraKind, Name: "prod"}
	})
	tn.startManager()
	tn.install(
		tn.addon("web", v1, withValues(map[string]any{"text": "one"}),
			withTemplate("region: '{{ .InfraCluster.spec.region }}'\ntier: '{{ .Cluster.metadata.labels.tier }}'\n"),
			valuesFromSecrets("values")),
		tn.addon("packed", "", func(a *addonsv1.Addon) {
			a.Chart = addonsv1.ChartSource{ConfigMap: &addonsv1.ArtifactReference{Name: "packed"}}
		}),
	)

	revision := map[string]int32{"web": 1, "packed": 1}
	for _, step := range []struct {
		name   string
		addon  string
		raises int32
		change func(tn *tenant)
	}{
		{"another version of the chart", "web", 1, func(tn *tenant) {
			tn.changeAddon("platform", "web", func(a *addonsv1.Addon) { a.Chart.Path = v2 })
		}},
		{"a downgrade", "web", 1, func(tn *tenant) {
			tn.changeAddon("platform", "web", func(a *addonsv1.Addon) { a.Chart.Path = v1 })
		}},
		{"a value", "web", 1, func(tn *tenant) {
			tn.changeAddon("platform", "web", withValues(map[string]any{"text": "two"}))
		}},
		{"a value in a Secret", "web", 1, func(tn *tenant) {
			change(tn, tn.secret("values", nil), func(s *corev1.Secret) { s.Data["values.yaml"] = []byte("fromSecret: two\n") })
		}},
		{"a field of the InfraCluster that the template uses", "web", 1, func(tn *tenant) {
			change(tn, infra, func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, "eu-2", "spec", "region")
			})
		}},
		{"a label of the Cluster that the template uses", "web", 1, func(tn *tenant) { tn.relabel("prod", "env=prod", "tier=two") }},
		{"the chart in a ConfigMap", "packed", 1, func(tn *tenant) {
			change(tn, tn.configMapWithChart("packed", nil), func(c *corev1.ConfigMap) {
				c.BinaryData[addonsv1.DefaultArtifactKey] = configMapChart.archive("packed", "1.1.0")
			})
		}},
		{"a value to what it is by default", "packed", 1, func(tn *tenant) {
			tn.changeAddon("platform", "packed", withValues(map[string]any{"text": "default"}))
		}},

		{"another key of the Secret", "web", 0, func(tn *tenant) {
			change(tn, tn.secret("values", nil), func(s *corev1.Secret) { s.Data["other"] = []byte("y") })
		}},
		{"a label of the Secret", "web", 0, func(tn *tenant) {
			change(tn, tn.secret("values", nil), func(s *corev1.Secret) { s.Labels = labels("a=b") })
		}},
		{"a field of the InfraCluster that nothing uses", "web", 0, func(tn *tenant) {
			change(tn, infra, func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, "x", "spec", "unused") })
		}},
		{"a label of the Cluster that nothing uses", "web", 0, func(tn *tenant) { tn.relabel("prod", "env=prod", "tier=two", "more=x") }},
		{"a label of the stack", "web", 0, func(tn *tenant) {
			change(tn, tn.newStack("platform", nil), func(s *addonsv1.AddonStack) { s.Labels = labels("a=b") })
		}},
		{"the progress deadline", "web", 0, func(tn *tenant) {
			tn.changeAddon("platform", "web", func(a *addonsv1.Addon) { a.ProgressDeadlineSeconds = ptr.To[int32](900) })
		}},
		{"the order of the values", "web", 0, func(tn *tenant) {
			tn.changeAddon("platform", "web", func(a *addonsv1.Addon) { a.Values.Raw = []byte(`{ "text" : "two" }`) })
		}},
		{"an add-on more", "web", 0, func(tn *tenant) {
			tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons = append(spec.Addons, tn.addon("more", v1)) })
		}},
	} {
		tn.run(step.name, func(t *testing.T, tn *tenant) {
			step.change(tn)
			revision[step.addon] += step.raises
			tn.awaitCluster("prod", "the change is to be taken up", installedAs(step.addon, revision[step.addon], ""))
			tn.settle()
			tn.awaitReady("platform", "all is ready after it")
			for addon, wanted := range revision {
				tn.Expect(s.release(t, tn.namespace, addon)).To(Equal(releaseState{int(wanted), "deployed"}),
					"release %s has one revision for each change of what it uses, and no other", addon)
			}
		})
	}
	tn.run("the values are those of all sources", func(t *testing.T, tn *tenant) {
		history := s.history(t, tn.namespace, "web")
		tn.Expect(history[len(history)-1].Config).To(Equal(map[string]any{
			"text": "two", "fromSecret": "two", "region": "eu-2", "tier": "two",
		}), "as `helm get values` shows")
	})
}

const (
	infraGroup = "infrastructure.cluster.x-k8s.io"
	infraKind  = "TestCluster"
)

// infraCluster is an infrastructure object as a provider would make it.
func (tn *tenant) infraCluster(name, region string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"region": region}}}
	u.SetAPIVersion(infraGroup + "/v1beta1")
	u.SetKind(infraKind)
	u.SetNamespace(tn.namespace)
	u.SetName(name)
	return u
}

// installInfraClusterCRD makes the management cluster serve infraKind.
func installInfraClusterCRD(t *testing.T) {
	t.Helper()
	crd := definitionOf(infraGroup, "v1beta1", infraKind, apiextensionsv1.NamespaceScoped)
	crd.Labels = labels("cluster.x-k8s.io/v1beta2=v1beta1")
	if err := world.hub.Create(t.Context(), crd); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	await(t, world.hub, crd, patience, "the API server is to serve the CRD", func(crd *apiextensionsv1.CustomResourceDefinition) error {
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("conditions: %v", crd.Status.Conditions)
	})
	poll(t, patience, "discovery is to follow", func() error {
		_, err := world.hub.RESTMapper().RESTMapping(schema.GroupKind{Group: infraGroup, Kind: infraKind}, "v1beta1")
		return err
	})
}
