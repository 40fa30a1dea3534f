// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/github"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/signing"
)

// lookNow asks for a look at a stack's sources.
func (tn *tenant) lookNow(name string) {
	tn.t.Helper()
	change(tn, tn.newStack(name, nil), func(s *addonsv1.AddonStack) {
		s.Annotations = map[string]string{addonsv1.LookNowAnnotation: fmt.Sprint(time.Now().UnixNano())}
	})
}

// followsAt expects one part of a stack, and no other, at a version, and another one available.
func followsAt(name, version, available string) stackCheck {
	return func(s *addonsv1.AddonStack) error {
		f := s.Status.Following
		if len(f) != 1 || f[0].Addon != name || f[0].Version != version || f[0].Available != available || f[0].Since.IsZero() {
			return fmt.Errorf("following is %+v, expected %s at %s, available %q", f, name, version, available)
		}
		return nil
	}
}

// keptOf is the spec that the newest revision of a stack keeps.
func (tn *tenant) keptOf(name string) *addonsv1.AddonStackSpec {
	tn.t.Helper()
	revisions := tn.revisionsOf(name)
	newest := slices.MaxFunc(revisions, func(a, b appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
	kept, err := stack.SpecOf(&newest)
	tn.Expect(err).NotTo(HaveOccurred())
	return kept
}

// betaRelease is a Cluster Stack release with one stage, called as it is told, whose
// ConfigMap has the text.
func betaRelease(stage, version, text string) map[string][]byte {
	return map[string][]byte{
		"metadata.yaml":     []byte("versions: {clusterStack: " + version + ", kubernetes: v1.31.6, components: {clusterAddon: v1}}\n"),
		"clusteraddon.yaml": []byte("addonStages: {AfterControlPlaneInitialized: [{name: " + stage + ", action: apply}]}\n"),
		"test-stack-1-31-cluster-addon-v1.tgz": tarball(map[string]string{
			stage + "/Chart.yaml":          "apiVersion: v2\nname: " + stage + "\nversion: 1.0.0\n",
			stage + "/templates/text.yaml": configMap(stage, quoted(text)),
		}),
	}
}

// TestFollowingChannels follows a channel of a Cluster Stack in a registry, which
// publishes newer releases, and one that is none.
// It isn't parallel: beside others a source would count as slow.
func TestFollowingChannels(t *testing.T) {
	long.Test(t)
	const line = "test-stack-1-31"
	tn := newTenant(t)
	workloads := []*server{workloadServer(t, 0), workloadServer(t, 1)}
	server := registry.Start(t, registry.Options{})
	dir := trusting(t, server.CA)
	stage := tn.namespace + "-a"
	publish := func(tag, version string) string {
		t.Helper()
		return server.PushRelease(t, betaRelease(stage, version, tag), "stacks", tag)
	}
	beta := func(patch int) string { return fmt.Sprintf("%s-v0-beta-%d", line, patch) }
	publishBeta := func(patch int) string { return publish(beta(patch), fmt.Sprintf("v0-beta.%d", patch)) }
	start := func() { tn.startManager("--credentials-dir=" + dir) }

	publishBeta(8)
	nine := publishBeta(9)
	publish(line+"-v0-sha-ab12", "v0-sha.ab12")
	publish("test-stack-1-32-v0-beta-99", "v0-beta.99")
	publish("latest", "v9")
	start()
	clusters := []string{"first", "second"}
	for i, cluster := range clusters {
		tn.makeCluster(cluster, workloads[i], labels("env=prod"))
	}
	s := tn.newStack("platform", labels("env=prod"))
	s.Spec.Source = &addonsv1.BundleSource{
		ArtifactSource: addonsv1.ArtifactSource{OCI: &addonsv1.OCISource{URL: server.URL("stacks")}},
		ClusterStack:   line, Channel: "beta",
	}
	tn.create(s)
	runs := func(tn *tenant, revision int32, text string) {
		tn.t.Helper()
		for i, cluster := range clusters {
			tn.awaitCluster(cluster, "each cluster gets the release that the stack follows", installedAs(stage, revision, "1.0.0"))
			tn.Expect(workloads[i].textIn(t, "kube-system", stage)).To(Equal(text))
		}
	}
	follows := func(version, available string) stackCheck {
		return followsAt(addonsv1.FollowedSource, version, available)
	}

	tn.run("the newest release of the channel", func(_ *testing.T, tn *tenant) {
		runs(tn, 1, beta(9))
		tn.awaitStatus("platform", "it says what it follows", follows(beta(9), ""), sources(metav1.ConditionTrue, addonsv1.SourcesReadyReason, ""), counts(2, 2))
		tn.Expect(tn.revisionsOf("platform")).To(HaveLen(1))
		tn.Expect(*tn.keptOf("platform").Source).To(Equal(addonsv1.BundleSource{
			ArtifactSource: addonsv1.ArtifactSource{OCI: &addonsv1.OCISource{URL: server.URL("stacks"), Digest: nine}, Version: beta(9)},
			Digest:         nine,
		}), "what is behind a revision is exact")
	})

	tn.run("the tenth comes after the ninth", func(_ *testing.T, tn *tenant) {
		publishBeta(10)
		tn.lookNow("platform")
		runs(tn, 2, beta(10))
		tn.awaitStatus("platform", "it says what it follows now", follows(beta(10), ""), counts(2, 2))
		tn.awaitEvent("NewVersion", "spec.source: "+beta(10)+", before "+beta(9)+"; it follows channel beta of "+line)
	})

	tn.run("a release that is none isn't taken", func(t *testing.T, tn *tenant) {
		server.PushRelease(t, map[string][]byte{"README.md": []byte("#")}, "stacks", beta(11))
		tn.lookNow("platform")
		s := tn.awaitStatus("platform", "it says why", follows(beta(10), beta(11)), counts(2, 2),
			sources(metav1.ConditionFalse, "ArtifactInvalid", "spec.source: "+beta(11)+": the bundle has no metadata.yaml"))
		tn.Expect(checkCondition(s, addonsv1.SourcesReadyCondition, metav1.ConditionFalse, "", "So "+beta(11)+" isn't taken, it stays at "+beta(10))).To(Succeed())
		tn.Expect(checkCondition(s, addonsv1.ValidCondition, metav1.ConditionTrue, "", "")).To(Succeed(), "nothing is wrong with the spec")
		tn.Expect(tn.revisionsOf("platform")).To(HaveLen(2))
		runs(tn, 2, beta(10))

		tn.settle()
		hub := world.hub.mark(t)
		tn.lookNow("platform")
		tn.settle()
		tn.Expect(writes(hub.requests(t, tn.user))).To(BeEmpty(), "a look that comes to the same writes nothing")

		publishBeta(11)
		tn.lookNow("platform")
		runs(tn, 3, beta(11))
		tn.awaitStatus("platform", "it was published again", follows(beta(11), ""), sources(metav1.ConditionTrue, "", ""), counts(2, 2))
	})

	tn.run("suspended", func(_ *testing.T, tn *tenant) {
		before := tn.revisionsOf("platform")
		tn.changeStack("platform", func(s *addonsv1.AddonStackSpec) { s.Updates = &addonsv1.Updates{Suspend: ptr.To(true)} })
		publishBeta(12)
		tn.lookNow("platform")
		tn.awaitStatus("platform", "it says what it would take", follows(beta(11), beta(12)), sources(metav1.ConditionTrue, "", ""), counts(2, 2))
		tn.settle()
		tn.Expect(namesOf(tn.revisionsOf("platform"))).To(ConsistOf(namesOf(before)), "whether it is suspended is no part of what clusters run")
		runs(tn, 3, beta(11))
		tn.changeStack("platform", func(s *addonsv1.AddonStackSpec) { s.Updates = nil })
		runs(tn, 4, beta(12))
		tn.awaitStatus("platform", "it continues", follows(beta(12), ""), counts(2, 2))
	})

	t.Run("a restart asks for nothing, and changes nothing", func(t *testing.T) { tn.in(t).restartsAtRest(server, start) })

	tn.run("another channel", func(_ *testing.T, tn *tenant) {
		tn.changeStack("platform", func(s *addonsv1.AddonStackSpec) { s.Source.Channel = "" })
		tn.awaitStatus("platform", "the spec waits for a stable release, clusters keep what they have",
			sources(metav1.ConditionUnknown, "ArtifactNotFound", "spec.source.oci: "+server.URL("stacks")+": it has no release in channel stable of "+line))
		runs(tn, 4, beta(12))
		publish(line+"-v1", "v1")
		tn.lookNow("platform")
		runs(tn, 5, line+"-v1")
		tn.awaitStatus("platform", "there is one", follows(line+"-v1", ""), sources(metav1.ConditionTrue, "", ""), counts(2, 2))
	})
}

// TestFollowingFiles has a kustomization and manifests that follow ranges of tags.
func TestFollowingFiles(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	server := registry.Start(t, registry.Options{})
	dir := trusting(t, server.CA)
	publish := func(tags ...string) {
		t.Helper()
		for _, tag := range tags {
			server.PushArchive(t, artifact{"kustomization.yaml": "resources: [page.yaml]\n", "page.yaml": configMap("page", quoted(tag))}.pack(), "site", tag)
		}
	}
	publish("1.0.0", "1.9.0", "1.10.0", "2.0.0", "latest")
	tn.startManager("--credentials-dir=" + dir)
	s := workloadServer(t, 0)
	tn.makeCluster("prod", s, labels("env=prod"))
	tn.makeStack("platform", labels("env=prod"), tn.addon("site", "", withKustomization(addonsv1.ArtifactSource{
		OCI: &addonsv1.OCISource{URL: server.URL("site")}, Version: "1.x",
	}, "")))
	tn.create(tn.configMapWithChart("bundle", tarball(map[string]string{
		"cni/Chart.yaml": "apiVersion: v2\nname: cni\nversion: 1.0.0\n", "cni/templates/text.yaml": configMap("cni", "cni"),
	})))
	mixed := tn.newStack("mixed", labels("env=none"), tn.addon("cni", "cni"), tn.addon("site", "", withKustomization(addonsv1.ArtifactSource{
		OCI: &addonsv1.OCISource{URL: server.URL("site")}, Version: "1.x",
	}, "")))
	mixed.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{ConfigMap: &addonsv1.ArtifactReference{Name: "bundle"}}}
	tn.create(mixed)
	tn.makeStack("moving", labels("env=none"), tn.addon("site", "", withKustomization(addonsv1.ArtifactSource{
		OCI: &addonsv1.OCISource{URL: server.URL("site")}, Version: "latest",
	}, "")))
	tn.makeStack("wrong", labels("env=none"), tn.addon("site", "", withKustomization(addonsv1.ArtifactSource{
		OCI: &addonsv1.OCISource{URL: server.URL("site")}, Version: ">=latest",
	}, "")))

	tn.awaitCluster("prod", "the newest tag of the range", installedAs("site", 1, "1.10.0"))
	tn.awaitStatus("platform", "it says what it follows", followsAt("site", "1.10.0", ""), sources(metav1.ConditionTrue, "", ""), counts(1, 1))
	tn.awaitReady("moving", "a tag is no range")
	tn.awaitStack("wrong", "what looks like a range has to be one", addonsv1.ValidCondition, metav1.ConditionFalse, addonsv1.InvalidVersionReason,
		"spec.addons[0].kustomization.version")
	tn.awaitStatus("mixed", "beside a bundle, too", followsAt("site", "1.10.0", ""))
	publish("1.11.0", "1.12.0-rc.1", "3.0.0")
	tn.lookNow("platform")
	tn.lookNow("mixed")
	tn.awaitStatus("mixed", "beside a bundle, too", followsAt("site", "1.11.0", ""))
	tn.awaitCluster("prod", "a newer tag", installedAs("site", 2, "1.11.0"))
	tn.awaitEvent("NewVersion", "Add-on site: 1.11.0, before 1.10.0; it follows the range 1.x")
	tn.Expect(s.textIn(t, tn.namespace, "page")).To(Equal("1.11.0"))
	kept := tn.keptOf("platform")
	tn.Expect(*kept.Addons[0].Kustomization).To(HaveField("OCI.Digest", HavePrefix("sha256:")))
	tn.Expect(kept.Addons[0].Kustomization.Version).To(Equal("1.11.0"))

	tn.changeAddon("platform", "site", func(a *addonsv1.Addon) {
		a.Manifests = &addonsv1.ManifestsSource{ArtifactSource: a.Kustomization.ArtifactSource, Directory: ""}
		a.Kustomization = nil
		a.Manifests.Version = "2.0"
	})
	tn.awaitStatus("platform", "2.0 is a tag, and there is none", func(s *addonsv1.AddonStack) error {
		if len(s.Status.Following) > 0 {
			return fmt.Errorf("it follows %+v", s.Status.Following)
		}
		return nil
	}, counts(1, 0))
}

// TestFollowingKeys has a newer release that is signed with a key that the stack
// doesn't trust yet. Other keys, and other credentials, are tried at once.
func TestFollowingKeys(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	server := registry.Start(t, registry.Options{PlainHTTP: true})
	repository := signing.Repository(t, server, "stacks")
	previous, next := signing.NewKey(t), signing.NewKey(t)
	stage := tn.namespace + "-a"
	publish := func(version string, key signing.Key) {
		t.Helper()
		manifest := server.PushRelease(t, betaRelease(stage, version, version), "stacks", "test-stack-1-31-"+version)
		signing.Attach(t, repository, manifest, key.Sign(t, manifest))
	}
	keys := &corev1.ConfigMap{
		ObjectMeta: tn.named("release-keys"), Data: map[string]string{"cosign.pub": string(previous.Public)},
	}
	tn.create(keys)
	publish("v1", previous)
	tn.startManager()
	tn.makeCluster("prod", workloadServer(t, 0), labels("env=prod"))
	s := tn.newStack("platform", labels("env=prod"))
	s.Spec.Source = &addonsv1.BundleSource{ClusterStack: "test-stack-1-31", ArtifactSource: addonsv1.ArtifactSource{
		OCI:    &addonsv1.OCISource{URL: server.URL("stacks"), PlainHTTP: ptr.To(true)},
		Verify: signedByKey(),
	}}
	tn.create(s)
	follows := func(version, available string) stackCheck {
		return followsAt(addonsv1.FollowedSource, version, available)
	}
	tn.awaitStatus("platform", "it is signed", follows("test-stack-1-31-v1", ""), sources(metav1.ConditionTrue, "", ""), counts(1, 1))

	publish("v2", next)
	tn.lookNow("platform")
	tn.awaitStatus("platform", "somebody else signed it", follows("test-stack-1-31-v1", "test-stack-1-31-v2"), counts(1, 1),
		sources(metav1.ConditionFalse, "SignatureInvalid", "So test-stack-1-31-v2 isn't taken, it stays at test-stack-1-31-v1"))
	rotated := time.Now()
	change(tn, keys, func(c *corev1.ConfigMap) { c.Data["cosign.pub"] = string(next.Public) })
	tn.awaitStatus("platform", "the key is trusted now", follows("test-stack-1-31-v2", ""), sources(metav1.ConditionTrue, "", ""), counts(1, 1))
	if took := time.Since(rotated); took > 20*time.Second {
		t.Errorf("it took %s: it waited for its turn", took)
	}
}

// TestFollowingAtACodeHost follows releases of repositories, with a token that is
// rotated meanwhile. The newest release of each is withdrawn after it was taken.
func TestFollowingAtACodeHost(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	workload := workloadServer(t, 1)
	server := github.Start(t, github.Options{Token: "right"})
	stage := tn.namespace + "-a"
	publish := func(patch int) string {
		tag := fmt.Sprintf("test-stack-1-31-v0-beta-%d", patch)
		var files []github.File
		for name, data := range betaRelease(stage, fmt.Sprintf("v0-beta.%d", patch), tag) {
			files = append(files, github.File{Name: name, Data: data})
		}
		server.Publish("team/stacks", github.Release{Tag: tag, Files: files})
		return tag
	}
	publishSite := func(version string) {
		packed := artifact{"kustomization.yaml": "resources: [page.yaml]\n", "page.yaml": configMap("page", quoted(version))}.pack()
		server.Publish("team/site", github.Release{Tag: "site-" + version, Files: []github.File{{Name: "site-" + version + ".tgz", Data: packed}}})
	}
	publish(9)
	publishSite("1.0.0")
	server.Publish("team/site", github.Release{Tag: "other-1.9.0"})
	token := tn.secret("token", map[string]string{"token": "wrong", "ca.crt": string(server.CA)})
	tn.create(token)
	tn.startManager()
	tn.makeCluster("prod", workload, labels("env=prod"))
	at := func(repository string) *addonsv1.GitHubSource {
		return &addonsv1.GitHubSource{URL: server.URL(repository), SecretRef: &addonsv1.CredentialsReference{Name: "token"}}
	}
	s := tn.newStack("platform", labels("env=prod"))
	s.Spec.Source = &addonsv1.BundleSource{
		ArtifactSource: addonsv1.ArtifactSource{GitHub: at("team/stacks")}, ClusterStack: "test-stack-1-31", Channel: "custom",
	}
	tn.create(s)
	files := at("team/site")
	files.TagPrefix, files.Asset = "site-", "site-*.tgz"
	tn.makeStack("site", labels("env=prod"), tn.addon("site", "", withKustomization(addonsv1.ArtifactSource{GitHub: files, Version: "^1"}, "")))

	follows := func(version, available string) stackCheck {
		return followsAt(addonsv1.FollowedSource, version, available)
	}
	tn.awaitStatus("platform", "the token is wrong", sources(metav1.ConditionUnknown, "SourceUnauthorized", "spec.source.github"))
	change(tn, token, func(s *corev1.Secret) { s.Data["token"] = []byte("right") })
	nine := "test-stack-1-31-v0-beta-9"
	tn.awaitStatus("platform", "the token is right", follows(nine, ""), sources(metav1.ConditionTrue, "", ""), counts(1, 1))
	tn.awaitCluster("prod", "both are installed", installedAs(stage, 1, "1.0.0"), installedAs("site", 1, "1.0.0"))

	ten := publish(10)
	publishSite("1.10.0")
	tn.lookNow("platform")
	tn.lookNow("site")
	tn.awaitCluster("prod", "newer releases", installedAs(stage, 2, "1.0.0"), installedAs("site", 2, "1.10.0"))
	tn.awaitStatus("platform", "it says so", follows(ten, ""), counts(1, 1))
	kept := tn.keptOf("platform")
	tn.Expect(kept.Source.Version).To(Equal(ten))
	tn.Expect(kept.Source.GitHub.Digest).To(HavePrefix("sha256:"))
	tn.Expect(kept.Source.ClusterStack + kept.Source.Channel).To(BeEmpty())

	tn.settle()
	server.Withdraw("team/stacks", ten)
	server.Withdraw("team/site", "site-1.10.0")
	tn.lookNow("platform")
	tn.lookNow("site")
	tn.awaitStatus("platform", "nothing goes back", follows(ten, ""), counts(1, 1),
		sources(metav1.ConditionFalse, "ArtifactNotFound", "spec.source: "+ten+" isn't published any more"))
	tn.awaitStatus("site", "nothing goes back", followsAt("site", "1.10.0", ""), counts(1, 1),
		sources(metav1.ConditionFalse, "ArtifactNotFound", "Add-on site: 1.10.0 isn't published any more"))
	tn.settle()
	hub := world.hub.mark(t)
	tn.lookNow("platform")
	tn.lookNow("site")
	tn.settle()
	tn.Expect(writes(hub.requests(t, tn.user))).To(BeEmpty(), "it is said once")
}

// TestInvalidBundleAtRest has a bundle that is no release, about which there is
// nothing new to say.
func TestInvalidBundleAtRest(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.create(tn.configMapWithChart("bundle", tarball(map[string]string{"README.md": "#"})))
	tn.startManager()
	s := tn.newStack("platform", labels("env=prod"))
	s.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{ConfigMap: &addonsv1.ArtifactReference{Name: "bundle"}}}
	tn.create(s)
	tn.awaitStack("platform", "it says so", addonsv1.ValidCondition, metav1.ConditionFalse, addonsv1.InvalidSourceReason, "no metadata.yaml")
	tn.settle()
	hub := world.hub.mark(t)
	tn.lookNow("platform")
	tn.settle()
	NewWithT(t).Expect(writes(hub.requests(t, tn.user))).To(BeEmpty(), "nothing has changed")
}
