// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/github"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/signing"
)

// Releases of a Cluster Stack as they were published, and the names of their
// ClusterClasses.
const releaseV1, releaseV2 = "docker-scs-1-31-v1", "docker-scs-1-31-v2"

// releasePlace is where releases are published.
type releasePlace struct {
	// publish puts the releases there, and returns where each is, by its name.
	publish func(*tenant, map[string]map[string][]byte) func(release string) addonsv1.BundleSource
	// stop takes the place away; nil if it can't be.
	stop func()
}

// TestRealClusterStack installs the releases of a Cluster Stack. It upgrades from one
// to the other by a switch of the Cluster's class. It takes them from each place that
// they may be published at.
func TestRealClusterStack(t *testing.T) {
	t.Parallel()
	releases := map[string]map[string][]byte{releaseV1: realRelease(t, releaseV1), releaseV2: realRelease(t, releaseV2)}
	for name, place := range map[string]func(*testing.T) *releasePlace{
		"directory":        inDirectory,
		"registry-layers":  inRegistry((*registry.Registry).PushRelease),
		"registry-archive": inRegistry(pushArchive),
		"github":           atGitHub,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			switchReleases(newTenant(t), place(t), releases)
		})
	}
}

// switchReleases installs one release, and then the other one in its place. It takes
// away all that they came from.
func switchReleases(tn *tenant, at *releasePlace, releases map[string]map[string][]byte) {
	t, g := tn.t, NewWithT(tn.t)
	from := at.publish(tn, releases)
	s := ownServer(t, controlplane.Options{Name: "workload-" + tn.namespace, Workers: true, Nodes: 2})
	cache := filepath.Join(t.TempDir(), "cache")
	tn.makeBundleStack(releaseV1, from(releaseV1))
	tn.makeBundleStack(releaseV2, from(releaseV2))
	tn.makeCluster("prod", s, nil, ofClass(releaseV1))
	tn.startManager("--cache-dir=" + cache)
	tn.awaitCluster("prod", "the stages of the release are installed", ready("cni", "metrics-server"))
	tn.awaitReady(releaseV1, "its cluster is ready")
	g.Expect(tn.eventNotes(releaseV1)).To(ContainElement(And(
		ContainSubstring("Cluster Stack release docker-scs-1-31-v1 for Kubernetes v1.31.6"),
		Not(ContainSubstring("not run")),
		ContainSubstring("not used: cluster-addon-values.yaml"))))
	before := s.objectsOf(t, "cni")
	g.Expect(before.agent).To(ContainSubstring("v1.16.6"))

	start := s.mark(t)
	tn.switchClass("prod", releaseV2)
	installed := func(ca *addonsv1.ClusterAddon) error {
		if status := statusOf(ca, "cni"); status.Stack != releaseV2 || status.Revision != 2 {
			return fmt.Errorf("cni is of stack %s at revision %d", status.Stack, status.Revision)
		}
		return nil
	}
	tn.awaitCluster("prod", "the other release is to be installed in its place", ready("cni", "metrics-server"), installed)
	tn.awaitReady(releaseV2, "its cluster is ready")
	after := s.objectsOf(t, "cni")
	g.Expect(after.agent).To(ContainSubstring("v1.17.4"))
	g.Expect(len(before.uids)).To(BeNumerically(">", 10))
	for object, uid := range before.uids {
		if _, ok := after.uids[object]; ok {
			g.Expect(after.uids).To(HaveKeyWithValue(object, uid), "what both releases have is upgraded in place")
		}
	}
	g.Expect(s.release(t, "kube-system", "metrics-server").revision).To(Equal(1))
	for _, write := range writes(start.requests(t, tn.clusterUser("prod"))) {
		verb, at, _ := strings.Cut(write, " ")
		at, _, _ = strings.Cut(at, "?")
		g.Expect(at).NotTo(And(ContainSubstring("metrics-server"), Not(ContainSubstring(recordOf("metrics-server")))), "what is the same in both releases isn't written")
		if verb == "delete" {
			g.Expect(after.uids).NotTo(HaveKey(at), "nothing is deleted that the new release has")
		}
	}

	// Nothing that is installed needs what it came from.
	unready := tn.watchReady()
	start = s.mark(t)
	tn.manager.Kill()
	g.Expect(os.RemoveAll(cache)).To(Succeed())
	if at.stop != nil {
		at.stop()
	}
	tn.startManager("--cache-dir=" + cache)
	tn.poke("prod", "restarted")
	tn.awaitReconcile("clusteraddon", 0)
	tn.settle()
	tn.awaitCluster("prod", "nothing changed", ready("cni", "metrics-server"), installed)
	tn.awaitReady(releaseV2, "nothing changed")
	g.Expect(unready()).To(BeEmpty())
	g.Expect(writes(start.requests(t, tn.clusterUser("prod")))).To(BeEmpty())
	g.Expect(tn.warnings()).To(BeEmpty())
}

// recordOf returns the prefix of the names of the Secrets that are records of a
// release.
func recordOf(release string) string { return "sh.helm.release.v1." + release + ".v" }

// installedObjects are those of an add-on.
type installedObjects struct {
	uids  map[string]types.UID // by their paths in the API
	agent string               // image of Cilium's DaemonSet
}

// objectsOf finds the objects of an add-on by their label.
func (s *server) objectsOf(t *testing.T, addon string) installedObjects {
	t.Helper()
	found := installedObjects{uids: map[string]types.UID{}}
	s.each(t, metav1.ListOptions{LabelSelector: addonsv1.AddonLabel + "=" + addon}, func(resource metav1.APIResource, gv schema.GroupVersion, o unstructured.Unstructured) {
		if o.GetLabels()["owner"] == "helm" {
			return // a record
		}
		at := path.Join("/apis", gv.String())
		if gv.Group == "" {
			at = "/api/v1"
		}
		if resource.Namespaced {
			at = path.Join(at, "namespaces", o.GetNamespace())
		}
		found.uids[path.Join(at, resource.Name, o.GetName())] = o.GetUID()
	})
	agents, err := s.clientset.AppsV1().DaemonSets("kube-system").Get(t.Context(), "cilium", metav1.GetOptions{})
	must.Succeed(t, err)
	found.agent = agents.Spec.Template.Spec.Containers[0].Image
	return found
}

// realRelease reads a published release. It skips the test where there is none.
func realRelease(t *testing.T, name string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	dir := os.DirFS(realdata.Path(t, "cluster-stacks", name))
	entries, err := fs.ReadDir(dir, ".")
	must.Succeed(t, err)
	for _, entry := range entries {
		if files[entry.Name()], err = fs.ReadFile(dir, entry.Name()); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// inDirectory has releases as directories of the artifact root.
func inDirectory(*testing.T) *releasePlace {
	return &releasePlace{publish: func(tn *tenant, releases map[string]map[string][]byte) func(string) addonsv1.BundleSource {
		for name, files := range releases {
			tn.writeRelease(name, files)
		}
		return func(release string) addonsv1.BundleSource {
			return addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: release}}
		}
	}}
}

// writeRelease puts a release below the artifact root.
func (tn *tenant) writeRelease(directory string, files map[string][]byte) {
	tn.t.Helper()
	texts := artifact{}
	for name, data := range files {
		texts[name] = string(data)
	}
	tn.writeFiles(directory, texts)
}

// atGitHub has releases in a private repository of a server with a certificate of its
// own, each file as one of the release.
func atGitHub(t *testing.T) *releasePlace {
	const repository = "scs/cluster-stacks"
	server := github.Start(t, github.Options{Token: "sentinel-token"})
	return &releasePlace{stop: server.Stop, publish: func(tn *tenant, releases map[string]map[string][]byte) func(string) addonsv1.BundleSource {
		for name, files := range releases {
			release := github.Release{Tag: name, Name: name}
			for file, data := range files {
				release.Files = append(release.Files, github.File{Name: file, Data: data})
			}
			server.Publish(repository, release)
		}
		tn.giveCredentials(map[string]string{"token": "sentinel-token", "ca.crt": string(server.CA)})
		return func(release string) addonsv1.BundleSource {
			return addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
				GitHub:  &addonsv1.GitHubSource{URL: server.URL(repository), SecretRef: &addonsv1.CredentialsReference{Name: "credentials"}},
				Version: release,
			}}
		}
	}}
}

// inRegistry has releases in a registry that wants credentials and has a certificate
// of its own, all signed.
func inRegistry(push func(*registry.Registry, testing.TB, map[string][]byte, string, string) string) func(*testing.T) *releasePlace {
	const repository = "cluster-stacks/docker-scs"
	return func(t *testing.T) *releasePlace {
		server := registry.Start(t, registry.Options{Users: map[string]string{"user": "password"}})
		key := signing.NewKey(t)
		publish := func(tn *tenant, releases map[string]map[string][]byte) func(string) addonsv1.BundleSource {
			signatures := signing.Repository(t, server, repository)
			for name, files := range releases {
				manifest := push(server, t, files, repository, name)
				signing.Attach(t, signatures, manifest, key.Sign(t, manifest))
			}
			tn.giveCredentials(map[string]string{"username": "user", "password": "password", "ca.crt": string(server.CA)})
			tn.trust(key)
			return func(release string) addonsv1.BundleSource {
				return addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
					OCI:     &addonsv1.OCISource{URL: server.URL(repository), SecretRef: &addonsv1.CredentialsReference{Name: "credentials"}},
					Version: release,
					Verify:  signedByKey(),
				}}
			}
		}
		return &releasePlace{publish: publish, stop: server.Stop}
	}
}

// pushArchive puts a release into a registry as one archive.
func pushArchive(r *registry.Registry, t testing.TB, files map[string][]byte, repository, tag string) string {
	t.Helper()
	return r.PushArchive(t, tarball(files), repository, tag)
}

// giveCredentials makes the Secret "credentials".
func (tn *tenant) giveCredentials(data map[string]string) {
	tn.t.Helper()
	tn.create(&corev1.Secret{ObjectMeta: tn.named("credentials"), StringData: data})
}

// trust makes the ConfigMap with the key that releases are to be signed with.
func (tn *tenant) trust(key signing.Key) {
	tn.t.Helper()
	tn.create(&corev1.ConfigMap{ObjectMeta: tn.named("release-keys"), Data: map[string]string{"cosign.pub": string(key.Public)}})
}

// signedByKey wants a signature by the key of trust.
func signedByKey() *addonsv1.Verification {
	return &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{PublicKeys: []addonsv1.TrustReference{{Kind: "ConfigMap", Name: "release-keys"}}}}
}
