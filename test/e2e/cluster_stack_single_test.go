// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/registry"
)

// TestReleaseOfOneStage installs a release that is one chart with others in it, made of a
// commit: its tag has seven parts, and its ClusterClass a dot. Its values come of the
// Cluster's own objects, and have a key twice.
func TestReleaseOfOneStage(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
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
			object, err := s.clientset.CoreV1().ConfigMaps("kube-system").Get(t.Context(), name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(object.Data).To(HaveKeyWithValue("text", text))
		}
	}
	expect(1, "eu-1")
	change(tn, infra, func(u *unstructured.Unstructured) {
		g.Expect(unstructured.SetNestedField(u.Object, "eu-3", "spec", "region")).To(Succeed())
	})
	expect(2, "eu-3")
}
