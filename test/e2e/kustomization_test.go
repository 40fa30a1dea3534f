// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// artifact is the texts of files by their paths.
type artifact map[string]string

// pack makes an archive as `tar -czf archive -C directory .` does.
func (a artifact) pack() []byte {
	files := map[string]string{}
	for file, text := range a {
		files["./"+file] = text
	}
	return tarball(files)
}

// writeFiles puts files below a directory of the artifact root.
func (tn *tenant) writeFiles(directory string, files artifact) {
	tn.t.Helper()
	for name, text := range files {
		file := filepath.Join(tn.charts, directory, name)
		must.Succeed(tn.t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.Succeed(tn.t, os.WriteFile(file, []byte(text), 0o644))
	}
}

func withKustomization(a addonsv1.ArtifactSource, directory string) func(*addonsv1.Addon) {
	return func(addon *addonsv1.Addon) {
		addon.Kustomization = &addonsv1.KustomizationSource{ArtifactSource: a, Directory: directory}
	}
}

func withManifests(path, directory string) func(*addonsv1.Addon) {
	return func(addon *addonsv1.Addon) {
		addon.Manifests = &addonsv1.ManifestsSource{ArtifactSource: addonsv1.ArtifactSource{Path: path}, Directory: directory}
	}
}

func withPatches(patches ...addonsv1.Patch) func(*addonsv1.Addon) {
	return func(addon *addonsv1.Addon) { addon.Patches = patches }
}

func patchOf(kind, text string) addonsv1.Patch {
	return addonsv1.Patch{Target: &addonsv1.PatchTarget{Kind: kind}, Patch: text}
}

// site is a kustomization with a base and an overlay.
func site(text string) artifact {
	return artifact{
		"base/kustomization.yaml": "resources: [role.yaml, page.yaml]\n",
		"base/role.yaml":          "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: reader}\nrules: []\n",
		"base/page.yaml":          configMap("page", "base"),
		"prod/kustomization.yaml": "resources: [../base]\nnamePrefix: prod-\nconfigMapGenerator: [{name: settings, files: [text]}]\n" +
			"patches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: page}, data: {text: overlay}}'}]\n",
		"prod/text": text,
	}
}

// parcelKind is a definition in a group of its own.
func parcelKind(group string) string {
	return strings.NewReplacer("GROUP", group+".test").Replace(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: parcels.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Parcel, plural: parcels}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`)
}

// TestKustomizations has add-ons that are no charts, from an object and from the
// artifact root, and patches on top of each kind.
func TestKustomizations(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 0)
	tn.create(tn.configMapWithChart("packed", site("one").pack()))
	tn.writeFiles("site", artifact{"kustomization.yaml": "namePrefix: site-\nresources: [a.yaml, b.yaml]\n", "a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")})
	tn.writeFiles("plain", artifact{"README.md": "# none", "x/c.yaml": configMap("c", "one") + "---\n" + configMap("d", "one")})
	path := tn.writeChart("settings", "1.0.0", chart{
		"crds/parcel.yaml":    parcelKind(tn.namespace),
		"templates/text.yaml": configMap("{{ .Release.Name }}", "{{ .Release.Name }}"),
		"templates/more.yaml": configMap("{{ .Release.Name }}-more", "more"),
	})
	tn.makeCluster("prod", s, labels("env=prod"))
	tn.startManager()
	tn.makeStack("platform", labels("env=prod"),
		tn.addon("packed", "", withKustomization(addonsv1.ArtifactSource{ConfigMap: &addonsv1.ArtifactReference{Name: "packed"}}, "prod"),
			withPatches(patchOf("Role", "[{op: add, path: /metadata/labels, value: {patched: 'yes'}}]"))),
		tn.addon("site", "", withKustomization(addonsv1.ArtifactSource{Path: "site"}, "")),
		tn.addon("plain", "", withManifests("plain", "x"), withPatches(addonsv1.Patch{Patch: "{apiVersion: v1, kind: ConfigMap, metadata: {name: d}, data: {text: patched}}"})),
		tn.addon("patched", path, withPatches(
			addonsv1.Patch{Target: &addonsv1.PatchTarget{Name: "patched"}, Patch: "data: {text: patched}"},
			patchOf("CustomResourceDefinition", "metadata: {labels: {patched: 'yes'}}"),
			addonsv1.Patch{Patch: "{apiVersion: v1, kind: ConfigMap, metadata: {name: patched-more}, $patch: delete}"})),
	)
	all := ready("packed", "site", "plain", "patched")
	revisions := map[string]int32{"packed": 1, "site": 1, "plain": 1, "patched": 1}
	expect := func(tn *tenant, reason string, text map[string]string) {
		tn.t.Helper()
		checks := []clusterCheck{all}
		for addon, revision := range revisions {
			checks = append(checks, installedAs(addon, revision, ""))
		}
		tn.awaitCluster("prod", reason, checks...)
		g := NewWithT(tn.t)
		got := map[string]string{}
		for name, object := range s.contents(tn.t, tn.namespace) {
			if data, ok := object.Object["data"].(map[string]any); ok && object.GetKind() == "ConfigMap" {
				name, _, _ = strings.Cut(strings.TrimPrefix(name, "ConfigMap. "+tn.namespace+"/"), "settings-") // less the hash
				got[name] = fmt.Sprint(data["text"])
			}
		}
		g.Expect(got).To(Equal(text), reason)
	}
	texts := map[string]string{
		"prod-": "one", "prod-page": "overlay", "site-a": "one", "site-b": "one", "c": "one", "d": "patched", "patched": "patched",
	}
	expect(tn, "all of them are to be installed", texts)

	t.Run("what the cluster says", func(t *testing.T) {
		g := NewWithT(t)
		found := s.contents(t, tn.namespace)
		role := found["Role.rbac.authorization.k8s.io "+tn.namespace+"/prod-reader"]
		g.Expect(role.GetLabels()).To(HaveKeyWithValue("patched", "yes"))
		crd := found["CustomResourceDefinition.apiextensions.k8s.io /parcels."+tn.namespace+".test"]
		g.Expect(crd.GetLabels()).To(HaveKeyWithValue("patched", "yes"), "patches are for CRDs in crds/, too")
		release := s.history(t, tn.namespace, "packed")[0]
		status := statusOf(tn.in(t).awaitCluster("prod", "ready", all), "packed")
		g.Expect(release.Chart.Metadata.Name).To(Equal("packed"), "as `helm list` shows it")
		g.Expect(release.Chart.Metadata.Version).To(MatchRegexp("^sha256-[0-9a-f]{12}$"))
		g.Expect(status.Version).To(Equal(release.Chart.Metadata.Version))
		g.Expect(release.Manifest).To(ContainSubstring("# Source: prod/kustomization.yaml"))
	})

	user := tn.clusterUser("prod")
	tn.run("reconciling costs nothing, also after a restart", func(t *testing.T, tn *tenant) {
		tn.settle()
		workload := s.mark(t)
		tn.reconcileAgain("prod", "again")
		tn.stopManager()
		tn.startManager()
		tn.awaitReady("platform", "nothing changed")
		tn.settle()
		tn.Expect(writes(workload.requests(t, user))).To(BeEmpty())
		expect(tn, "nothing changed", texts)
	})

	for _, step := range []struct {
		name, addon string
		change      func(*tenant)
		texts       map[string]string // "" for one that is gone
	}{
		{"other content of a generated ConfigMap", "packed", func(tn *tenant) {
			change(tn, tn.configMapWithChart("packed", nil), func(c *corev1.ConfigMap) { c.BinaryData[addonsv1.DefaultArtifactKey] = site("two").pack() })
		}, map[string]string{"prod-": "two"}},
		{"an object less", "site", func(tn *tenant) {
			tn.writeFiles("site", artifact{"kustomization.yaml": "namePrefix: site-\nresources: [a.yaml]\n"})
		}, map[string]string{"site-b": ""}},
		{"a file changes", "site", func(tn *tenant) { tn.writeFiles("site", artifact{"a.yaml": configMap("a", "two")}) }, map[string]string{"site-a": "two"}},
		{"a file more", "plain", func(tn *tenant) {
			tn.writeFiles("plain", artifact{"x/y/e.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"e"},"data":{"text":"json"}}`})
		}, map[string]string{"e": "json"}},
		{"other patches", "patched", func(tn *tenant) {
			tn.changeAddon("platform", "patched", withPatches(addonsv1.Patch{Target: &addonsv1.PatchTarget{Name: "patched.*"}, Patch: "data: {text: both}"}))
		}, map[string]string{"patched": "both", "patched-more": "both"}},
		{"another directory", "packed", func(tn *tenant) {
			tn.changeAddon("platform", "packed", func(a *addonsv1.Addon) { a.Kustomization.Directory = "base" })
		}, map[string]string{"prod-": "", "prod-page": "", "page": "base"}},
		{"manifests in place of a kustomization", "packed", func(tn *tenant) {
			tn.writeFiles("other", artifact{"f.yaml": configMap("f", "manifest")})
			tn.changeAddon("platform", "packed", func(a *addonsv1.Addon) {
				a.Kustomization, a.Patches = nil, nil
				withManifests("other", "")(a)
			})
		}, map[string]string{"page": "", "f": "manifest"}},
		{"a file in a ConfigMap's data", "packed", func(tn *tenant) {
			object := &corev1.ConfigMap{ObjectMeta: tn.named("install"), Data: map[string]string{"install.yaml": configMap("g", "one") + "---\n" + configMap("h", "one")}}
			tn.create(object)
			tn.changeAddon("platform", "packed", func(a *addonsv1.Addon) {
				a.Manifests.ArtifactSource = addonsv1.ArtifactSource{ConfigMap: &addonsv1.ArtifactReference{Name: "install", Key: "install.yaml"}}
			})
		}, map[string]string{"f": "", "g": "one", "h": "one"}},
		{"another file in it", "packed", func(tn *tenant) {
			object := &corev1.ConfigMap{ObjectMeta: tn.named("install")}
			change(tn, object, func(c *corev1.ConfigMap) { c.Data["install.yaml"] = configMap("g", "two") })
		}, map[string]string{"g": "two", "h": ""}},
		{"a file at a path", "packed", func(tn *tenant) {
			tn.changeAddon("platform", "packed", func(a *addonsv1.Addon) { a.Manifests.ArtifactSource = addonsv1.ArtifactSource{Path: "other/f.yaml"} })
		}, map[string]string{"g": "", "f": "manifest"}},
	} {
		tn.run(step.name, func(_ *testing.T, tn *tenant) {
			step.change(tn)
			revisions[step.addon]++
			for name, text := range step.texts {
				if texts[name] = text; text == "" {
					delete(texts, name)
				}
			}
			expect(tn, "the change is to be taken up, and what is gone to be pruned", texts)
		})
	}

	for _, mistake := range []struct {
		name, addon, reason, says string
		change                    func(*addonsv1.Addon)
	}{
		{"a remote base", "site", "KustomizationInvalid", "addons[site].kustomization: kustomization.yaml: resources: there is an address", func(a *addonsv1.Addon) { a.Kustomization.Path = "remote" }},
		{"a patch for nothing", "patched", "PatchFailed", `addons[patched].patches[0] fits none of the add-on's objects ({"kind":"Deployment"})`, withPatches(patchOf("Deployment", "spec: {replicas: 1}"))},
		{"no manifests", "plain", "ManifestInvalid", "addons[plain].manifests: directory z of the artifact has no objects in files whose names end in .yaml, .yml or .json; set manifests.directory to x or x/y", func(a *addonsv1.Addon) { a.Manifests.Directory = "z" }},
		{"a path that isn't there", "plain", "ArtifactNotFound", "addons[plain].manifests.path", func(a *addonsv1.Addon) { a.Manifests.Path = "nowhere" }},
		{"files that are no chart", "patched", "ArtifactInvalid", "addons[patched].chart.path", func(a *addonsv1.Addon) { a.Chart.Path = "plain" }},
	} {
		tn.run(mistake.name, func(_ *testing.T, tn *tenant) {
			tn.writeFiles("remote", artifact{"kustomization.yaml": "resources: [github.com/org/repo]\n"})
			var before addonsv1.Addon
			tn.changeAddon("platform", mistake.addon, func(a *addonsv1.Addon) { before = *a.DeepCopy(); mistake.change(a) })
			tn.awaitCluster("prod", "a mistake is to be told", func(ca *addonsv1.ClusterAddon) error {
				status := statusOf(ca, mistake.addon)
				if status == nil || status.Reason != mistake.reason || !strings.Contains(status.Message, mistake.says) {
					return fmt.Errorf("status %+v, expected %s: %s", status, mistake.reason, mistake.says)
				}
				return nil
			})
			tn.settle()
			tn.changeAddon("platform", mistake.addon, func(a *addonsv1.Addon) { *a = before })
			expect(tn, "what is installed stayed as it was, and is what is wanted again", texts)
		})
	}

	tn.run("removal", func(_ *testing.T, tn *tenant) {
		tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons = spec.Addons[len(spec.Addons)-1:] })
		all, revisions = ready("patched"), map[string]int32{"patched": revisions["patched"]}
		expect(tn, "what the stack has no more is to be removed", map[string]string{"patched": "both", "patched-more": "both"})
	})
}
