// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/registry"
)

// ofClass makes a Cluster one of a ClusterClass.
func ofClass(name string) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) {
		c.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: name}, Version: "v1.31.6"}
	}
}

// makeBundleStack makes an AddonStack for the Clusters of a class, with a bundle.
func (tn *tenant) makeBundleStack(class string, from addonsv1.BundleSource) {
	tn.t.Helper()
	s := &addonsv1.AddonStack{}
	s.Namespace, s.Name = tn.namespace, class
	s.Spec.ClassNames, s.Spec.Source = []string{class}, &from
	tn.create(s)
}

// switchClass gives a Cluster another ClusterClass.
func (tn *tenant) switchClass(cluster, class string) {
	tn.t.Helper()
	change(tn, newCluster(tn.namespace, cluster, nil), func(c *clusterv1.Cluster) { ofClass(class)(c) })
}

// eventNotes are those of the events of a stack.
func (tn *tenant) eventNotes(stack string) []string {
	tn.t.Helper()
	var notes []string
	for _, e := range tn.events() {
		if e.Regarding.Kind == "AddonStack" && e.Regarding.Name == stack {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

// stackRelease is a small Cluster Stack release: two stages of which the second waits
// for a ConfigMap, called gate, in the tenant's namespace. The text is in the first
// one's ConfigMap.
func (tn *tenant) stackRelease(version, text string, extra ...string) map[string][]byte {
	first, second := tn.namespace+"-a", tn.namespace+"-b"
	stages := fmt.Sprintf(`addonStages:
  AfterControlPlaneInitialized:
  - name: %[1]s
    action: apply
  - name: %[2]s
    action: apply
    waitForPreCondition:
      objects: [{key: gate, apiVersion: v1, kind: ConfigMap, name: gate, namespace: %[3]s}]
      conditions: gate.data.open == "before"  || gate.data.open == "after"
    waitForPostCondition:
      objects: [{key: gate, apiVersion: v1, kind: ConfigMap, name: gate, namespace: %[3]s}]
      conditions: gate.data.open == "after"
`, first, second, tn.namespace)
	for _, name := range extra {
		stages += fmt.Sprintf("  - {name: %s, action: delete}\n", name)
	}
	object := configMap("{{ .Release.Name }}-{{ .Chart.Name }}", "{{ .Values.text | quote }}")
	addons := map[string]string{}
	for _, name := range []string{first, second} {
		addons[name+"/Chart.yaml"] = fmt.Sprintf("apiVersion: v2\nname: %s\nversion: 1.0.0\n", name)
		addons[name+"/values.yaml"] = "text: default\n"
		addons[name+"/templates/text.yaml"] = object
	}
	addons[first+"/overwrite.yaml"] = "values: |\n  text: '" + text + " {{ .Cluster.status.infrastructureReady }} {{ .Cluster.apiVersion }} [{{ .Cluster.spec.missing }}]'\n"
	return map[string][]byte{
		"metadata.yaml":     []byte("versions: {clusterStack: " + version + ", kubernetes: v1.31.6, components: {clusterAddon: " + version + "}}\n"),
		"clusteraddon.yaml": []byte(stages),
		"test-stack-1-31-cluster-addon-" + version + ".tgz": tarball(addons),
	}
}

// tarball packs files.
func tarball[T string | []byte](files map[string]T) []byte {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			panic(err) // in memory
		}
		_, _ = archive.Write([]byte(files[name]))
	}
	_ = archive.Close()
	_ = zipped.Close()
	return packed.Bytes()
}

// TestClusterStack installs releases from a directory, a ConfigMap and a registry,
// one after the other on the same cluster.
func TestClusterStack(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 0)
	s.createNamespace(t, tn.namespace)
	first, second := tn.namespace+"-a", tn.namespace+"-b"
	gate := &corev1.ConfigMap{ObjectMeta: tn.named("gate")}
	open := func(value string) {
		t.Helper()
		changeOn(t, s, gate, func(c *corev1.ConfigMap) { c.Data = map[string]string{"open": value} })
	}
	expectText := func(text string) {
		t.Helper()
		tn.Expect(s.textIn(t, "kube-system", "cluster-addon-"+first)).To(Equal(text))
	}

	dir := filepath.Join(tn.charts, "releases", "v1")
	tn.Expect(os.MkdirAll(dir, 0o750)).To(Succeed())
	for name, data := range tn.stackRelease("v1", "one") {
		tn.Expect(os.WriteFile(filepath.Join(dir, name), data, 0o600)).To(Succeed())
	}
	tn.makeBundleStack("test-stack-1-31-v1", addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "releases/v1"}})
	tn.makeCluster("prod", s, nil, ofClass("test-stack-1-31-v1"))
	tn.startManager()
	tn.awaitCluster("prod", "the gate isn't there", installedAs(first, 1, "1.0.0"),
		phase(second, addonsv1.AddonPending, "WaitingForPrecondition", "ConfigMap "+tn.namespace+"/gate doesn't exist"))
	expectText("one true cluster.x-k8s.io/v1beta1 []")
	tn.Expect(s.Create(t.Context(), gate)).To(Succeed())
	open("before")
	tn.awaitCluster("prod", "the gate isn't open after it", phase(second, addonsv1.AddonInstalling, "WaitingForPostcondition", `isn't true`))
	open("after")
	tn.awaitCluster("prod", "the gate is open", ready(first, second), installedAs(second, 1, "1.0.0"))
	tn.awaitReady("test-stack-1-31-v1", "its cluster is ready")

	tn.run("a release in a ConfigMap", func(t *testing.T, tn *tenant) {
		bundle := &corev1.ConfigMap{ObjectMeta: tn.named("release"), BinaryData: map[string][]byte{"release.tgz": tarball(tn.stackRelease("v2", "two"))}}
		tn.makeBundleStack("test-stack-1-31-v2", addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
			ConfigMap: &addonsv1.ArtifactReference{Name: "release", Key: "release.tgz"}}})
		tn.awaitStack("test-stack-1-31-v2", "there is no bundle yet", addonsv1.SourcesReadyCondition, metav1.ConditionUnknown, "ArtifactNotFound", "source.configMap")
		tn.create(bundle)
		tn.awaitStack("test-stack-1-31-v2", "the bundle is there", addonsv1.ReadyCondition, metav1.ConditionTrue, "", "")
		start := s.mark(t)
		tn.switchClass("prod", "test-stack-1-31-v2")
		tn.awaitCluster("prod", "the first stage is another one", ready(first, second), installedAs(first, 2, "1.0.0"), installedAs(second, 1, "1.0.0"))
		expectText("two true cluster.x-k8s.io/v1beta1 []")
		for _, write := range writes(start.requests(t, tn.clusterUser("prod"))) {
			NewWithT(t).Expect(write).NotTo(And(ContainSubstring(second), Not(ContainSubstring("/secrets/"+recordOf(second)))), "its chart and values are the same")
		}

		start = s.mark(t)
		tn.stopManager()
		tn.startManager()
		tn.awaitReconcile("clusteraddon", 0)
		tn.settle()
		tn.awaitCluster("prod", "nothing changed", ready(first, second), installedAs(first, 2, "1.0.0"))
		NewWithT(t).Expect(writes(start.requests(t, tn.clusterUser("prod")))).To(BeEmpty(), "a restart changes nothing")
	})

	tn.run("a release in a registry, that deletes a stage", func(t *testing.T, tn *tenant) {
		server := registry.Start(t, registry.Options{PlainHTTP: true})
		release := tn.stackRelease("v3", "three")
		release["clusteraddon.yaml"] = fmt.Appendf(nil, "addonStages: {AfterControlPlaneInitialized: [{name: %s, action: apply}, {name: %s, action: delete}]}", first, second)
		release["test-stack-1-31-cluster-class-v3.tgz"] = []byte("none of our business")
		server.PushRelease(t, release, "stacks/test", "test-stack-1-31-v3")
		server.Requests(t)
		plain := true
		tn.makeBundleStack("test-stack-1-31-v3", addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
			OCI: &addonsv1.OCISource{URL: server.URL("stacks/test"), PlainHTTP: &plain}, Version: "test-stack-1-31-v3"}})
		tn.switchClass("prod", "test-stack-1-31-v3")
		tn.awaitCluster("prod", "one stage is left", ready(first), installedAs(first, 3, "1.0.0"))
		expectText("three true cluster.x-k8s.io/v1beta1 []")
		blobs := slices.DeleteFunc(server.Requests(t), func(line string) bool { return !strings.Contains(line, "/blobs/") })
		NewWithT(t).Expect(blobs).To(HaveLen(3), "each file that is used is read once, and the ClusterClass not at all")
	})
}
