// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// TestReleasesOfManyMakers takes what the Cluster Stack Operator takes, and refuses what
// lacks a part; and it takes manifests that are JSON, as others write it.
func TestReleasesOfManyMakers(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 1)
	stage, archive := tn.namespace+"-a", "test-stack-1-31-cluster-addon-v1.tgz"
	release := func(stages string) []byte {
		files := tn.stackRelease("v1", "one")
		files["clusteraddon.yaml"] = []byte("addonStages:\n" + stages)
		files[archive] = tarball(map[string]string{
			stage + "/Chart.yaml":          "apiVersion: v2\nname: a\nversion: 1.0.0\n",
			stage + "/templates/text.yaml": configMap("{{ .Release.Name }}-"+stage, "{{ .Values.port | quote }}"),
			stage + "/overwrite.yaml":      "values: |\n  port: '{{ printf \"%d\" .Cluster.spec.controlPlaneEndpoint.port }}'\n",
		})
		return tarball(files)
	}
	bundle := &corev1.ConfigMap{ObjectMeta: tn.named("release")}
	publish := func(stages string) {
		t.Helper()
		change(tn, bundle, func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"release.tgz": release(stages)} })
	}
	bundle.BinaryData = map[string][]byte{"release.tgz": release(fmt.Sprintf(
		"  AfterControlPlaneInitialized: [{name: %s, action: apply}]\n  AfterClusterUpgrade: [{name: Foo_Bar, action: replace}]\n", stage))}
	tn.create(bundle)
	tn.makeBundleStack("made", addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{ConfigMap: &addonsv1.ArtifactReference{Name: "release", Key: "release.tgz"}}})
	tn.makeCluster("prod", s, nil, ofClass("made"), func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{} })
	tn.startManager()

	tn.awaitCluster("prod", "nobody runs the other hook", ready(stage))
	tn.Expect(tn.eventNotes("made")).To(ContainElement(ContainSubstring(`not run, and couldn't be: stages of AfterClusterUpgrade: stage 0: name "Foo_Bar"`)))
	tn.Expect(s.textIn(t, "kube-system", "cluster-addon-"+stage)).To(Equal("0"), "the Cluster has no endpoint yet")

	publish(fmt.Sprintf("  AfterControlPlaneInitialized: [{name: %s, action: apply}, {name: lost, action: apply}]\n", stage))
	tn.awaitStack("made", "a stage has no chart", addonsv1.ValidCondition, metav1.ConditionFalse, "ArtifactInvalid",
		`spec.source: clusteraddon.yaml: stage lost: "`+archive+`/lost" of the bundle: the bundle has nothing of this name`)
	tn.awaitCluster("prod", "what runs stays", ready(stage), installedAs(stage, 1, "1.0.0"))

	publish(fmt.Sprintf("  AfterControlPlaneInitialized: [{name: %s, action: delete}]\n", stage))
	tn.awaitCluster("prod", "the release deletes all it had", ready())
	tn.awaitReady("made", "it has nothing to install")

	tn.run("manifests in a key", func(t *testing.T, tn *tenant) {
		install := &corev1.ConfigMap{ObjectMeta: tn.named("install"), Data: map[string]string{"install": "# nothing yet\n"}}
		tn.create(install)
		tn.makeStack("plain", nil, tn.addon("plain", "", withManifests("", ""), func(a *addonsv1.Addon) {
			a.Manifests.ArtifactSource = addonsv1.ArtifactSource{ConfigMap: &addonsv1.ArtifactReference{Name: "install", Key: "install"}}
		}))
		write := func(text string) {
			t.Helper()
			change(tn, install, func(c *corev1.ConfigMap) { c.Data["install"] = text })
		}
		key := `ConfigMap ` + tn.namespace + `/install, key "install"`
		tn.awaitCluster("prod", "there is nothing in it", phase("plain", addonsv1.AddonFailed, "ManifestInvalid", key+" has no objects"))
		write("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n...\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\n")
		tn.awaitCluster("prod", "one of both would be left out", phase("plain", addonsv1.AddonFailed, "ManifestInvalid", key+": more follows the end of a document"))
		write(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "b\/c \ud83d\ude00"}}`)
		tn.awaitCluster("prod", "it is JSON", ready("plain"))
		object, err := s.clientset.CoreV1().ConfigMaps(tn.namespace).Get(t.Context(), "one", metav1.GetOptions{})
		tn.Expect(err).NotTo(HaveOccurred())
		tn.Expect(object.Data).To(HaveKeyWithValue("a", "b/c 😀"))
	})
}

// TestReleaseWithNamespaceOfKubernetes has a stage that renders Namespace kube-system, as
// Cilium's chart does if its Secrets are to be there: it needs no adoptionPolicy.
func TestReleaseWithNamespaceOfKubernetes(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 1)
	stage := tn.namespace + "-a"
	label := "made-by/" + tn.namespace
	files := tn.stackRelease("v1", "one")
	files["clusteraddon.yaml"] = []byte(fmt.Sprintf("addonStages:\n  AfterControlPlaneInitialized: [{name: %s, action: apply}]\n", stage))
	files["test-stack-1-31-cluster-addon-v1.tgz"] = tarball(map[string]string{
		stage + "/Chart.yaml":               "apiVersion: v2\nname: a\nversion: 1.0.0\n",
		stage + "/templates/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, labels: {'" + label + "': yes-it-is}}\n",
		stage + "/templates/text.yaml":      configMap(stage, "x"),
	})
	bundle := &corev1.ConfigMap{ObjectMeta: tn.named("release"), BinaryData: map[string][]byte{"release.tgz": tarball(files)}}
	tn.create(bundle)
	tn.makeBundleStack("shared", addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{ConfigMap: &addonsv1.ArtifactReference{Name: "release", Key: "release.tgz"}}})
	tn.makeCluster("prod", s, nil, ofClass("shared"))
	tn.startManager()
	tn.awaitCluster("prod", "the namespace is shared", ready(stage))
	namespace, err := s.clientset.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	tn.Expect(err).NotTo(HaveOccurred())
	tn.Expect(namespace.Labels).To(And(HaveKeyWithValue(label, "yes-it-is"), Not(HaveKey(addonsv1.AddonLabel))))

	tn.remove(tn.newStack("shared", nil))
	tn.awaitCluster("prod", "it is removed", ready())
	namespace, err = s.clientset.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	tn.Expect(err).NotTo(HaveOccurred())
	tn.Expect(namespace.DeletionTimestamp).To(BeNil())
}
