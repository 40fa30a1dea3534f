// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/migration"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/virtualcluster"
)

// TestWhatIsNotMovedOver has releases that can't be taken over, a previous owner that comes from Git, and one that isn't
// stopped. Nothing is written before each of that is solved. It isn't parallel, as the owner is there for all namespaces.
func TestWhatIsNotMovedOver(t *testing.T) {
	long.InCI(t)
	c := previousRelease{chart: "web", namespace: "default", archive: configMapChart.archive("web", "1.0.0"),
		name: func(string) string { return "web" }, values: func(string) map[string]any { return map[string]any{"text": "x"} }}
	m := newMoving(t, c)
	authority := virtualcluster.NewAuthority(t)
	m.joins("problems-0", authority.New(t, m.userOn(workloadServer(t, 1), "problems-0"), "problems-0").Kubeconfig)
	m.install(migration.Provider)
	flux := func(name, metadata, spec string) {
		m.make(fmt.Sprintf("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: %s%s}\nspec: {targetNamespace: default, storageNamespace: default%s}\n", name, metadata, spec))
	}
	m.make("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts}\nspec: {url: " + quoted(m.repository) + "}\n")
	const from, here = ", chart: {spec: {chart: web, sourceRef: {kind: HelmRepository, name: charts}}}", ", kubeConfig: {secretRef: {name: problems-0-kubeconfig}}"
	flux("good", "", ", releaseName: web"+from+here)
	flux("without-record", "", from+here)
	flux("from-git", ", labels: {kustomize.toolkit.fluxcd.io/name: all}", ", releaseName: web"+from+here)
	flux("suspended-in-git", ", labels: {kustomize.toolkit.fluxcd.io/name: all}", ", suspend: true, releaseName: web"+from+here)
	flux("patched", "", ", releaseName: web, postRenderers: [{kustomize: {patches: []}}]"+from+here)
	flux("elsewhere", "", ", releaseName: web, chart: {spec: {chart: ./web, sourceRef: {kind: GitRepository, name: charts}}}"+here)
	flux("management", "", ", releaseName: web"+from)
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	config.Name, config.Labels = "caaph-"+m.namespace, labels("cluster.x-k8s.io/provider=addon-helm")
	manifest := &admissionregistrationv1.MutatingWebhookConfiguration{} // of the provider's manifests, which clusterctl didn't apply
	manifest.Name, manifest.Labels = "manifest-"+m.namespace, labels("cluster.x-k8s.io/provider=helm")
	for _, o := range []client.Object{config, manifest} {
		m.create(o)
		t.Cleanup(func() { m.remove(o) })
	}
	gather := func(origin migration.Origin, repositories map[string]string, names ...string) *migration.Found {
		found, err := migration.Gather(t.Context(), &migration.World{
			Client: world.hub, Namespace: m.namespace, Origin: origin, Names: names, Repositories: repositories,
			Workload: m.workload,
		})
		m.Expect(err).NotTo(HaveOccurred())
		return found
	}
	problems := func(origin migration.Origin, names ...string) string {
		return strings.Join(gather(origin, nil, names...).Problems, "\n")
	}
	m.Expect(problems(migration.Provider)).To(And(ContainSubstring(config.Name), ContainSubstring(manifest.Name)))
	m.Expect(gather(migration.Provider, nil).Releases).To(ConsistOf(HaveField("Shown", Equal(map[string]any{"text": "x"}))))
	m.Expect(m.upgrades("problems-0", c, map[string]any{"secret": "y"})).To(Succeed())
	m.Expect(gather(migration.Provider, nil).Releases).To(ConsistOf(HaveField("Shown", BeNil())), "the record alone has them")
	m.Expect(problems(migration.Helm)).To(And(ContainSubstring("default/web"), ContainSubstring("--repository web=")))
	for name, problem := range map[string]string{
		"good": "", "suspended-in-git": "", "management": "", "without-record": "default-without-record", "from-git": "from-git", "patched": "patched", "elsewhere": "--repository web=",
	} {
		is := problems(migration.Flux, name)
		m.Expect(is).To(ContainSubstring(problem))
		m.Expect(is == "").To(Equal(problem == ""), "%s: %s", name, is)
	}

	p := m.newPlugin(mayMove...)
	m.maySeeProviders(p)
	for _, origin := range []string{"caaph", "flux", "helm"} {
		out, code := p.run("migrate", origin, "--apply", "--timeout", "5s") // no instance plans
		m.Expect(code).To(Equal(3), out)
	}
	stacks := &addonsv1.AddonStackList{}
	m.Expect(world.hub.List(t.Context(), stacks, client.InNamespace(m.namespace))).To(Succeed())
	m.Expect(stacks.Items).To(BeEmpty())

	found := gather(migration.Helm, map[string]string{"web": m.repository})
	m.Expect(found.Problems).To(BeEmpty())
	writes := func(stack, text string) error { // the Secret of a stack, and no more
		plan := found.Plans()[0]
		plan.Stack.Name = stack
		plan.Secrets[0].SetLabels(map[string]string{"migration.addons.cluster.x-k8s.io/stack": stack})
		plan.Secrets[0].Object["stringData"] = map[string]any{"values.yaml": text}
		steps := found.Takeover([]*migration.Plan{plan})
		m.Expect(steps[0].Name).To(Equal("write Secret web-values"))
		return migration.Run(t.Context(), steps[:1], func(string) {})
	}
	m.Expect(writes("one", "a: 1")).To(Succeed())
	m.Expect(writes("one", "a: 2")).To(Succeed(), "a command may be run again")
	m.Expect(writes("two", "a: 3")).To(MatchError(ContainSubstring("AddonStack two")))
	written := m.secret("web-values", nil)
	m.Expect(world.hub.Get(t.Context(), client.ObjectKeyFromObject(written), written)).To(Succeed())
	m.Expect(written.Data).To(HaveKeyWithValue("values.yaml", []byte("a: 2")), "the Secret of another AddonStack stays")
	written.Labels, written.ManagedFields = nil, nil
	m.Expect(world.hub.Update(t.Context(), written)).To(Succeed())
	m.Expect(writes("one", "a: 4")).To(MatchError(ContainSubstring("AddonStack one")), "somebody's own Secret stays")

	m.makeStack("web", nil, m.addon("web", "web"))
	change(m.tenant, newCluster(m.namespace, "problems-0", nil), func(c *clusterv1.Cluster) { c.Labels["migrated.addons.cluster.x-k8s.io/web"] = "flux" })
	steps, err := (&migration.World{Client: world.hub, Namespace: m.namespace, Origin: migration.Flux}).Back(t.Context())
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(steps).To(BeEmpty(), "an AddonStack of others stays")

	workload, err := client.New(m.clusters["problems-0"], client.Options{})
	m.Expect(err).NotTo(HaveOccurred())
	ownRecord(t, workload, "web", "2", map[string]string{"addons.cluster.x-k8s.io/stack": "x\x1b[2J"})
	out, _ := p.run("migrate", "flux", "good")
	m.Expect(out).To(ContainSubstring("# problem: release default/web on cluster problems-0 is an add-on of AddonStack x?[2J"), "a terminal acts on no words of a cluster")
}

// ownRecord has the record of a release in namespace default look as one of an add-on.
func ownRecord(t *testing.T, workload client.Client, release, revision string, annotations map[string]string) {
	t.Helper()
	record := &corev1.Secret{}
	must.Succeed(t, workload.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "sh.helm.release.v1." + release + ".v" + revision}, record))
	record.Labels[addonsv1.AddonLabel], record.Labels[addonsv1.AddonNamespaceLabel] = release, "default"
	record.Annotations = annotations
	must.Succeed(t, workload.Update(t.Context(), record))
}

// TestMovedBefore has AddonStacks that a migration made before: one has a release that is found, and one hasn't.
func TestMovedBefore(t *testing.T) {
	t.Parallel()
	m := newMoving(t, previousRelease{chart: "web", namespace: "default", archive: configMapChart.archive("web", "1.0.0"),
		name: func(string) string { return "before" }, values: func(string) map[string]any { return nil }})
	authority := virtualcluster.NewAuthority(t)
	m.joins("before-0", authority.New(t, m.userOn(workloadServer(t, 1), "before-0"), "before-0").Kubeconfig)
	m.install(migration.Helm)
	made := func(name, release string) *addonsv1.AddonStack {
		a := m.addon(release, "web")
		a.Namespace = "default"
		s := m.newStack(name, labels("env=prod"), a)
		s.Labels, s.Annotations = labels("migration.addons.cluster.x-k8s.io/from=helm"), map[string]string{clusterv1.PausedAnnotation: ""}
		m.create(s)
		return s
	}
	made("team", "gone")
	has := made("has", "before")
	workload, err := client.New(m.clusters["before-0"], client.Options{})
	m.Expect(err).NotTo(HaveOccurred())
	steps := func() (names []string) {
		found, err := migration.Gather(t.Context(), &migration.World{
			Client: world.hub, Namespace: m.namespace, Origin: migration.Helm, Names: []string{"before", "gone"},
			Workload: m.workload,
		})
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(found.Releases).To(BeEmpty())
		for _, s := range found.Takeover(found.Plans()) {
			names = append(names, s.Name)
		}
		return names
	}
	const resumes, waits = "resume AddonStack has", "wait until AddonStack has is Ready"
	m.Expect(steps()).To(Equal([]string{resumes, waits}), "a team paused the other one")
	ownRecord(t, workload, "before", "1", nil)
	m.Expect(steps()).To(Equal([]string{resumes, waits}), "Chandler has it, and may not be through")
	has.Status.LatestRevision = "has-1"
	m.Expect(world.hub.Status().Update(t.Context(), has)).To(Succeed())
	m.Expect(steps()).To(Equal([]string{waits}), "a team paused it after it began")
}

// TestBackAwaitsPlainReleases has a cluster that has no AddonStack any more, and an add-on of one that isn't left yet.
func TestBackAwaitsPlainReleases(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	made := func() {
		s := tn.newStack("web", nil, tn.addon("web", "web"))
		s.Labels = labels("migration.addons.cluster.x-k8s.io/from=helm")
		tn.create(s)
	}
	made()
	ca := tn.clusterAddon("prod")
	ca.Spec.ClusterName, ca.Finalizers = "prod", []string{"example.org/test"}
	tn.create(ca)
	ca.Status.Addons = []addonsv1.AddonStatus{{Name: "web", Namespace: "default", Stack: "web", Phase: addonsv1.AddonReady, Since: metav1.Now()}}
	tn.Expect(world.hub.Status().Update(t.Context(), ca)).To(Succeed())
	goesBack := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		steps, err := (&migration.World{Client: world.hub, Namespace: tn.namespace, Origin: migration.Helm}).Back(ctx)
		tn.Expect(err).NotTo(HaveOccurred())
		tn.Expect(steps).NotTo(BeEmpty())
		return migration.Run(ctx, steps, func(string) {})
	}
	tn.Expect(goesBack(5 * time.Second)).To(MatchError(ContainSubstring("cluster prod has it still")))
	made()
	tn.Expect(world.hub.Delete(t.Context(), ca)).To(Succeed())
	tn.Expect(goesBack(patience)).To(Succeed(), "a ClusterAddon that is being deleted leaves nothing")
	change(tn, ca, func(ca *addonsv1.ClusterAddon) { ca.Finalizers = nil })
}
