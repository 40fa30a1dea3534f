// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/registry"
)

// TestMoveFromClusterStackOperator takes over what the Cluster Stack Operator
// installed from a release, and upgrades it.
func TestMoveFromClusterStackOperator(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 2)
	name := tn.namespace + "-a"
	for version, data := range map[string]string{"v1": "{kept: one, dropped: one}", "v2": "{kept: two}"} {
		release := tn.smallRelease(version, version)
		release["test-stack-1-31-cluster-addon-"+version+".tgz"] = tarball(map[string]string{
			name + "/Chart.yaml":             "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n",
			name + "/templates/agent.yaml":   deployment(name, "1"),
			name + "/templates/setting.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: " + data + "\n",
		})
		tn.writeRelease(version, release)
	}
	// As the operator does: applied by server, in the name of kubectl, with its label.
	const label = "clusterstack.x-k8s.io/instance"
	applied := func(text string) client.Object {
		t.Helper()
		object := &unstructured.Unstructured{}
		tn.Expect(yaml.Unmarshal([]byte(text), &object.Object)).To(Succeed())
		object.SetNamespace("kube-system")
		object.SetLabels(labels(label + "=owned"))
		if object.GetKind() == "Deployment" {
			tn.Expect(unstructured.SetNestedField(object.Object, "owned", "spec", "template", "metadata", "labels", label)).To(Succeed())
		}
		tn.Expect(s.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"), client.ForceOwnership)).To(Succeed())
		return object
	}
	applied(deployment(name, "1"))
	applied("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {kept: one, dropped: one, previous: one}\n")
	running, err := s.clientset.AppsV1().Deployments("kube-system").Get(t.Context(), name, metav1.GetOptions{})
	tn.Expect(err).NotTo(HaveOccurred())

	for _, version := range []string{"v1", "v2"} {
		stack := tn.newStack(version, nil)
		stack.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		stack.Spec.ClusterSelector, stack.Spec.ClassNames = nil, []string{version}
		stack.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: version}, AdoptionPolicy: addonsv1.AdoptionPolicyAdopt}
		tn.create(stack)
	}
	start := s.mark(t)
	tn.makeCluster("prod", s, nil, ofClass("v1"))
	tn.startManager()
	tn.awaitStack("v1", "it waits for the operator's end", addonsv1.PausedCondition, metav1.ConditionTrue, "", "")
	tn.settle()
	tn.Expect(writes(start.requests(t, tn.clusterUser("prod")))).To(BeEmpty())

	expect := func(texts map[string]string) {
		t.Helper()
		settings, err := s.clientset.CoreV1().ConfigMaps("kube-system").Get(t.Context(), name, metav1.GetOptions{})
		tn.Expect(err).NotTo(HaveOccurred())
		tn.Expect(settings.Data).To(Equal(texts))
		agent, err := s.clientset.AppsV1().Deployments("kube-system").Get(t.Context(), name, metav1.GetOptions{})
		tn.Expect(err).NotTo(HaveOccurred())
		tn.Expect(agent.UID).To(Equal(running.UID))
		tn.Expect(agent.Generation).To(Equal(running.Generation), "no pod is restarted")
		tn.Expect(agent.Spec.Template.Labels).To(HaveKeyWithValue(label, "owned"))
	}
	for _, version := range []string{"v1", "v2"} {
		change(tn, tn.newStack(version, nil), func(s *addonsv1.AddonStack) { s.Annotations = nil })
	}
	tn.awaitCluster("prod", "it is taken over", ready(name), installedAs(name, 1, "1.0.0"))
	expect(map[string]string{"kept": "one", "dropped": "one"})

	tn.awaitStack("v2", "the other release can be used", addonsv1.ReadyCondition, metav1.ConditionTrue, "", "")
	tn.switchClass("prod", "v2")
	tn.awaitCluster("prod", "it is upgraded", ready(name), installedAs(name, 2, "1.0.0"))
	expect(map[string]string{"kept": "two"})
}

// TestReleaseOfOneStage installs a release that is one chart with others in it, made of a
// commit: its tag has seven parts, and its ClusterClass a dot. Its values come of the
// Cluster's own objects, and have a key twice.
func TestReleaseOfOneStage(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 2)
	const class, tag = "test-stack-1-31-v0-sha.abc", "test-stack-1-31-v0-sha-abc"
	server := registry.Start(t, registry.Options{PlainHTTP: true})
	server.PushRelease(t, map[string][]byte{
		"metadata.yaml": []byte("versions: {clusterStack: v0-sha.abc, kubernetes: v1.31.6, components: {clusterAddon: v0-sha.abc}}\n"),
		"cluster-addon-values.yaml": []byte(`values: |
  text: overwritten
  text: '{{ .ControlPlane.spec.region }} of {{ .ControlPlane.metadata.name }}'
  part:
    text: '{{ .InfraCluster.spec.region }}'
`),
		"test-stack-1-31-cluster-addon-v0-sha.abc.tgz": tarball(map[string]string{
			"addon/Chart.yaml":                      "apiVersion: v2\nname: addon\nversion: 1.0.0\ndependencies: [{name: part, version: 2.0.0, repository: 'https://charts.invalid'}]\n",
			"addon/templates/text.yaml":             configMap(tn.namespace, "{{ .Values.text | quote }}"),
			"addon/charts/part/Chart.yaml":          "apiVersion: v2\nname: part\nversion: 2.0.0\n",
			"addon/charts/part/templates/text.yaml": configMap("{{ .Release.Name }}-"+tn.namespace, "{{ .Values.text | quote }}"),
		}),
	}, "stacks/test", tag)
	installInfraClusterCRD(t)
	infra := tn.infraCluster("prod", "eu-1")
	tn.create(infra)
	tn.create(tn.infraCluster("prod-nodes", "eu-2"))
	tn.makeBundleStack(class, addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
		OCI: &addonsv1.OCISource{URL: server.URL("stacks/test"), PlainHTTP: ptr.To(true)}, Version: tag}})
	tn.makeCluster("prod", s, nil, ofClass(class), withInfraCluster("prod"), func(c *clusterv1.Cluster) {
		c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup, Kind: infraKind, Name: "prod-nodes"}
	})
	tn.startManager()

	expect := func(revision int32, region string) {
		t.Helper()
		tn.awaitCluster("prod", "it is of the release's class", ready("cluster-addon"), installedAs("cluster-addon", revision, "1.0.0"))
		for name, text := range map[string]string{tn.namespace: "eu-2 of prod-nodes", "cluster-addon-" + tn.namespace: region} {
			tn.Expect(s.textIn(t, "kube-system", name)).To(Equal(text))
		}
	}
	expect(1, "eu-1")
	change(tn, infra, func(u *unstructured.Unstructured) {
		tn.Expect(unstructured.SetNestedField(u.Object, "eu-3", "spec", "region")).To(Succeed())
	})
	expect(2, "eu-3")
}
