// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/gitserver"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/signing"
)

// TestGit follows a branch, a tag and a range of a repository, which gets commits, is forced, asks for a password, and goes away.
func TestGit(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	server := gitserver.Start(t, true)
	server.Password = "a password"
	repository := server.Repository(t, "team/charts.git")
	push := func(version string) string {
		files := map[string]string{"manifests/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: of-manifests\ndata: {version: " + version + "}\n"}
		for name, data := range configMapChart.complete("settings", version) {
			files["charts/settings/"+name] = data
		}
		return repository.Commit(files)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "git", Namespace: tn.namespace},
		Data:       map[string][]byte{"username": []byte("git"), "password": []byte("another"), "ca.crt": server.CA()},
	}
	tn.create(secret)
	from := func(change func(*addonsv1.GitSource)) *addonsv1.GitSource {
		git := &addonsv1.GitSource{URL: repository.URL, SecretRef: &addonsv1.CredentialsReference{Name: "git"}}
		change(git)
		return git
	}
	settings := func(change func(*addonsv1.GitSource)) func(*addonsv1.Addon) {
		return func(a *addonsv1.Addon) {
			git := from(change)
			git.Path = "charts/settings"
			a.Chart = addonsv1.ChartSource{Git: git}
		}
	}
	main := func(git *addonsv1.GitSource) { git.Branch = "main" }
	first := push("1.0.0")
	tn.makeCluster("first", workloadServer(t, 0), labels("env=prod"))
	tn.startManager()
	plain := addonsv1.Addon{Name: "plain", Namespace: tn.namespace, Manifests: &addonsv1.ManifestsSource{
		ArtifactSource: addonsv1.ArtifactSource{Git: from(func(git *addonsv1.GitSource) { git.Branch, git.Path = "main", "manifests" })},
	}}
	tn.makeStack("platform", labels("env=prod"), tn.addon("settings", "", settings(main)))
	tn.makeStack("beside", labels("env=prod"), plain)
	tn.awaitStatus("platform", "the password is wrong", sources(metav1.ConditionUnknown, failure.SourceUnauthorized, "Secret "+tn.namespace+"/git"))
	secret.Data["password"] = []byte(server.Password)
	tn.Expect(world.hub.Update(t.Context(), secret)).To(Succeed())

	at := func(tn *tenant, revision int32, version, following string) {
		tn.t.Helper()
		tn.awaitCluster("first", "it has what the stack follows", installedAs("settings", revision, version))
		tn.awaitStatus("platform", "it says the commit", followsAt("settings", following, ""), sources(metav1.ConditionTrue, addonsv1.SourcesReadyReason, ""), counts(1, 1))
	}
	tn.run("a branch", func(_ *testing.T, tn *tenant) {
		at(tn, 1, "1.0.0", "heads/main@sha1:"+first)
		tn.awaitStatus("beside", "manifests, too", followsAt("plain", "heads/main@sha1:"+first, ""), counts(1, 1))
		tn.Expect(server.Fetches.Load()).To(BeEquivalentTo(1), "both add-ons share a fetch")
		kept := tn.keptOf("platform")
		tn.Expect(kept.Addons[0].Chart.Git.Commit).To(Equal(first), "what is behind a revision is exact")
		tn.Expect(kept.Addons[0].Chart.Git.Digest).To(HavePrefix("sha256:"))
		tn.Expect(kept.Addons[0].Chart.Git.Branch).To(Equal("main"))
	})
	tn.run("a newer commit, and a forced branch", func(_ *testing.T, tn *tenant) {
		second := push("1.1.0")
		tn.lookNow("platform")
		at(tn, 2, "1.1.0", "heads/main@sha1:"+second)
		tn.lookNow("beside")
		tn.awaitStatus("beside", "manifests, too", followsAt("plain", "heads/main@sha1:"+second, ""), counts(1, 1))
		tn.Expect(server.Fetches.Load()).To(BeEquivalentTo(2), "both add-ons share a fetch")
		repository.Git("reset", "-q", "--hard", first)
		tn.lookNow("platform")
		at(tn, 3, "1.0.0", "heads/main@sha1:"+first)
	})
	tn.run("a tag, and a range", func(_ *testing.T, tn *tenant) {
		second := push("1.2.0")
		repository.Git("tag", "v1.2.0")
		tn.changeAddon("platform", "settings", settings(func(git *addonsv1.GitSource) { git.Tag = "v1.2.0" }))
		at(tn, 4, "1.2.0", "tags/v1.2.0@sha1:"+second)
		tn.changeAddon("platform", "settings", settings(func(git *addonsv1.GitSource) { git.Semver = "1.x" }))
		third := push("1.3.0")
		repository.Git("tag", "-a", "-m", "a tag", "v1.3.0")
		tn.lookNow("platform")
		at(tn, 5, "1.3.0", "tags/v1.3.0@sha1:"+third)
	})
	tn.run("suspended, as a revision says", func(_ *testing.T, tn *tenant) {
		tn.changeAddon("platform", "settings", settings(main))
		third := repository.Git("rev-parse", "main")
		at(tn, 5, "1.3.0", "heads/main@sha1:"+third)
		tn.changeStack("platform", func(s *addonsv1.AddonStackSpec) { s.Updates = &addonsv1.Updates{Suspend: ptr.To(true)} })
		fourth := push("1.4.0")
		tn.lookNow("platform")
		tn.awaitStatus("platform", "it says what it would take", followsAt("settings", "heads/main@sha1:"+third, "heads/main@sha1:"+fourth), sources(metav1.ConditionTrue, "", ""), counts(1, 1))
		kept := tn.keptOf("platform")
		tn.changeStack("platform", func(s *addonsv1.AddonStackSpec) { s.Addons, s.Updates = kept.Addons, nil }) // as undo does
		tn.changeAddon("platform", "settings", settings(main))
	})
	tn.run("a plan of a commit", func(_ *testing.T, tn *tenant) {
		repository.Git("checkout", "-q", "-b", "proposed")
		proposed := repository.Commit(map[string]string{"charts/settings/templates/more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"})
		repository.Git("checkout", "-q", "main")
		p := tn.planOf("proposed", func(s *addonsv1.AddonStackSpec) {
			settings(func(git *addonsv1.GitSource) { git.Commit = proposed })(&s.Addons[0])
		})
		tn.Expect(changesOf(p, "Create")).To(ConsistOf("configmaps "+tn.namespace+"/more"), "%+v", p.Status)
	})
	tn.run("commits that have to be signed", func(_ *testing.T, tn *tenant) {
		at(tn, 6, "1.4.0", "heads/main@sha1:"+repository.Git("rev-parse", "main"))
		key := signing.NewOpenPGPKey(t, 0)
		tn.create(&corev1.ConfigMap{ObjectMeta: tn.named("keys"), BinaryData: map[string][]byte{addonsv1.DefaultKeyringKey: key.Public}})
		tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) {
			settings(main)(a)
			a.Chart.Verify = &addonsv1.Verification{Provenance: &addonsv1.ProvenanceVerification{Keyring: addonsv1.TrustReference{Kind: "ConfigMap", Name: "keys"}}}
		})
		push("1.5.0")
		tn.lookNow("platform")
		tn.awaitStatus("platform", "the commit isn't signed", sources(metav1.ConditionFalse, failure.SignatureMissing, ""), counts(1, 1))
		signed := repository.CommitText(key.Commit(t, repository.Git("cat-file", "commit", "HEAD")+"\n"))
		tn.lookNow("platform")
		at(tn, 7, "1.5.0", "heads/main@sha1:"+signed)
		tn.changeAddon("platform", "settings", settings(main))
	})
	tn.run("a server that is down", func(_ *testing.T, tn *tenant) {
		newest := repository.Git("rev-parse", "main")
		tn.awaitStatus("platform", "it has the newest commit", followsAt("settings", "heads/main@sha1:"+newest, ""), sources(metav1.ConditionTrue, "", ""), counts(1, 1))
		server.Close()
		tn.restart()
		tn.settle() // what the stack asks for when a process begins to work on it was acted on before
		tn.lookNow("platform")
		s := tn.awaitStatus("platform", "it says so", sources(metav1.ConditionFalse, failure.SourceUnavailable, "refuses connections"), counts(1, 1))
		tn.Expect(checkCondition(s, addonsv1.ReadyCondition, metav1.ConditionTrue, "", "refuses connections")).To(Succeed(), "what is installed stays ready")
	})
	tn.run("fields that contradict each other", func(_ *testing.T, tn *tenant) {
		for text, change := range map[string]func(*addonsv1.GitSource){
			"set one of branch": func(git *addonsv1.GitSource) { git.Branch, git.Tag = "main", "v1" },
			"digest needs commit": func(git *addonsv1.GitSource) {
				git.Branch, git.Digest = "main", "sha256:"+repository.Git("hash-object", "-t", "tree", "/dev/null")
			},
			"ssh://user@host": func(git *addonsv1.GitSource) { git.Branch, git.URL = "main", "https://a:b@example.org/x.git" },
			"plainHTTP":       func(git *addonsv1.GitSource) { git.Branch, git.URL = "main", "http://example.org/x.git" },
			"url is https":    func(git *addonsv1.GitSource) { git.Branch, git.URL = "main", "https://example.org/a/../x.git" },
		} {
			err := world.hub.Create(t.Context(), tn.newStack("wrong", labels("env=none"), tn.addon("settings", "", settings(change))))
			tn.Expect(err).To(MatchError(ContainSubstring(text)))
		}
	})
}
