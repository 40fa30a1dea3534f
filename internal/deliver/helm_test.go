// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	helmkube "helm.sh/helm/v4/pkg/kube"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/long"
)

// getter gives Helm a cluster.
type getter struct{ namespace string }

func (getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(config), nil }

func (g getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	return memory.NewMemCacheClient(d), err
}

func (g getter) ToRESTMapper() (meta.RESTMapper, error) {
	d, err := g.ToDiscoveryClient()
	return restmapper.NewDeferredDiscoveryRESTMapper(d), err
}

func (g getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), &clientcmd.ConfigOverrides{
		Context: clientcmdapi.Context{Namespace: g.namespace},
	})
}

func helm(e *env, ns string) *action.Configuration { return helmWith(e, ns, ns) }

// helmWith has its records in a namespace of their own, as Flux has.
func helmWith(e *env, ns, storage string) *action.Configuration {
	c := action.NewConfiguration()
	e.Expect(c.Init(getter{ns}, storage, "secret")).To(Succeed())
	return c
}

func TestHelmRollsBackAndUninstalls(t *testing.T) {
	e, ns := alone(t)
	one, two := e.want(ns, demo("1", "one")), e.want(ns, demo("2", "two", configMap("second", "x")))
	e.install(one)
	e.install(two)

	list := action.NewList(helm(e, ns))
	releases, err := list.Run()
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(releases).To(HaveLen(1))
	e.Expect(releases[0].(*helmrelease.Release)).To(And(HaveField("Name", "demo"), HaveField("Version", 2)))

	rollback := action.NewRollback(helm(e, ns))
	rollback.Version, rollback.ServerSideApply, rollback.ForceConflicts = 1, "true", true
	rollback.WaitStrategy, rollback.Timeout = helmkube.HookOnlyStrategy, time.Minute
	e.Expect(rollback.Run("demo")).To(Succeed())
	data := e.get("v1", "ConfigMap", ns, "settings").Object["data"]
	e.Expect(data).To(HaveKeyWithValue("key", "one"))

	// What Helm did is undone, and everything is ours again.
	summary := e.records(ns)[one.Release]
	e.Expect(summary.Revision).To(Equal(3))
	e.Expect(summary.Settled(demo("2", "two", configMap("second", "x")).digest())).To(BeFalse())
	e.Expect(summary.Owner).To(Equal("fleet/cluster-a"))
	_, err = e.d.Remove(e.ctx, e.target, one.Release)
	e.Expect(err).To(MatchError(deliver.ErrUnproven), "anybody may have written what Helm's record says")
	e.Expect(e.get("v1", "ConfigMap", ns, "settings")).NotTo(BeNil())
	o := e.install(two)
	e.Expect(o.Revision).To(BeEquivalentTo(4))
	data = e.get("v1", "ConfigMap", ns, "settings").Object["data"]
	e.Expect(data).To(HaveKeyWithValue("key", "two"))
	e.Expect(e.get("v1", "ConfigMap", ns, "second")).NotTo(BeNil())
	e.Expect(e.remove(one.Release).Gone).To(BeTrue())
	for _, name := range []string{"settings", "second"} {
		e.Expect(e.get("v1", "ConfigMap", ns, name)).To(BeNil(), name)
	}

	e.install(two)
	uninstall := action.NewUninstall(helm(e, ns))
	uninstall.WaitStrategy, uninstall.Timeout = helmkube.HookOnlyStrategy, time.Minute
	_, err = uninstall.Run("demo")
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(e.get("v1", "ConfigMap", ns, "settings")).To(BeNil())
	e.Expect(e.records(ns)).To(BeEmpty())
	o = e.install(two)
	e.Expect(o.Revision).To(BeEquivalentTo(1))
}

// TestRecordHasDefaultValues has Helm tell all values of a release: `helm upgrade --reuse-values` begins with them.
func TestRecordHasDefaultValues(t *testing.T) {
	e, ns := alone(t)
	want := e.want(ns, demo("1", "one"))
	render := want.Render
	want.Render = func(ctx context.Context, in deliver.RenderInput) (*deliver.Rendering, error) {
		r, err := render(ctx, in)
		r.Chart = json.RawMessage(`{"metadata":{"name":"demo","version":"1.0.0","apiVersion":"v2","home":"https://example.org"},"values":{"a":"default","deep":{"er":"default"}}}`)
		return r, err
	}
	e.install(want)
	all := action.NewGetValues(helm(e, ns))
	all.AllValues = true
	e.Expect(all.Run("demo")).To(Equal(map[string]any{"a": "b", "deep": map[string]any{"er": "default"}}))
	e.Expect(action.NewGetMetadata(helm(e, ns)).Run("demo")).To(And(HaveField("Chart", "demo"), HaveField("Version", "1.0.0")))
}

// noise is a text of so many bytes, and a third more, that can't be compressed.
func noise(bytes int) string {
	random := make([]byte, bytes)
	_, _ = rand.Read(random)
	return base64.StdEncoding.EncodeToString(random)
}

// TestTooLargeAddon has an add-on whose record doesn't fit in a Secret. It fails before anything of it is in the cluster,
// and an upgrade to it leaves what is installed.
func TestTooLargeAddon(t *testing.T) {
	e, ns := beside(t)
	large := chart{version: "2", manifest: configMap("a", noise(500_000)) + configMap("b", noise(500_000))}
	told := func(o deliver.Outcome) {
		e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
		e.Expect(o.Message).To(And(ContainSubstring(ns+"/demo"), ContainSubstring("Split it")))
	}
	told(e.settleAs(e.want(ns, large), deliver.ReasonRecordTooLarge))
	e.Expect(e.get("v1", "ConfigMap", ns, "a")).To(BeNil())

	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
	e.clock.step(time.Minute)
	e.install(want)
	before := e.snapshot(ns)
	told(e.settleAs(e.want(ns, large), deliver.ReasonRecordTooLarge))
	e.Expect(e.snapshot(ns)).To(Equal(before))
	e.Expect(e.records(ns)[want.Release].Status).To(Equal(deliver.StatusDeployed))
	e.clock.step(time.Minute)
	e.install(want)
}

// TestHelmUninstallsAtThisMoment leaves the release to Helm until it is done.
func TestHelmUninstallsAtThisMoment(t *testing.T) {
	e, ns := alone(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("x", "a")})
	e.install(want)
	// What Helm writes first: without our annotations and keys.
	secret := &corev1.Secret{}
	e.Expect(e.target.Client.Get(e.ctx, client.ObjectKey{Namespace: ns, Name: "sh.helm.release.v1.demo.v1"}, secret)).To(Succeed())
	secret.Annotations = nil
	delete(secret.Data, "chandler")
	secret.Labels["status"] = "uninstalling"
	secret.Labels["modifiedAt"] = fmt.Sprint(e.clock.Now().Unix())
	e.Expect(e.target.Client.Update(e.ctx, secret)).To(Succeed())
	o := e.ensureAs(want, deliver.ReasonReleaseLocked)
	e.Expect(o.Phase).To(Equal(addonsv1.AddonPending))

	// Helm continues: the objects of the manifest go, and then the records that it knew of.
	e.Expect(e.target.Client.Delete(e.ctx, e.get("v1", "ConfigMap", ns, "x"))).To(Succeed())
	e.Expect(e.target.Client.Delete(e.ctx, secret)).To(Succeed())
	e.clock.step(11 * time.Second)
	e.install(want)
	e.Expect(e.get("v1", "ConfigMap", ns, "x")).NotTo(BeNil())
}

// TestUninstalledReleaseHasNothing installs an add-on of a release of which `helm uninstall --keep-history` left the
// record. An object that somebody made again since isn't the add-on's.
func TestUninstalledReleaseHasNothing(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("x", "a")})
	want.Adoption = addonsv1.AdoptionPolicyAdopt
	e.helmInstalls(want.Release, ns, theirChart("1", configMap("old", "theirs")))
	uninstall := action.NewUninstall(helm(e, ns))
	uninstall.KeepHistory, uninstall.WaitStrategy, uninstall.Timeout = true, helmkube.HookOnlyStrategy, time.Minute
	_, err := uninstall.Run(want.Name)
	e.Expect(err).NotTo(HaveOccurred())
	e.apply("kubectl", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old, namespace: %s, annotations: {meta.helm.sh/release-name: demo, meta.helm.sh/release-namespace: %s}}\n", ns, ns))
	e.install(want)
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).NotTo(BeNil())
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).NotTo(BeNil())
}

// theirDeployment has an annotation that the chart of the add-on drops.
const theirDeployment = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app, annotations: {dropped: later}, labels: {helm.toolkit.fluxcd.io/name: demo}}\n" +
	"spec: {replicas: 1, selector: {matchLabels: {app: app}}, template: {metadata: {labels: {app: app}}, spec: {containers: [{name: c, image: i}]}}}\n"

// TestAdoptedRelease takes over what Helm's library installed, under the names of its programs
// and by client-side and server-side apply, and gives it back.
func TestAdoptedRelease(t *testing.T) {
	long.InCI(t)
	for program, manager := range map[string]string{"Helm": "helm", "Flux": "helm-controller", "the Helm add-on provider": "manager"} {
		for apply, serverSide := range map[string]bool{"client": false, "server": true} {
			t.Run(program+", "+apply+"-side", func(t *testing.T) {
				e, ns := alone(t)
				helmkube.ManagedFieldsManager = manager
				defer func() { helmkube.ManagedFieldsManager = "" }()
				theirs := theirChart("1", theirDeployment+configMap("kept", "theirs")+configMap("old", "theirs"))
				e.helmInstalls(deliver.Release{Namespace: ns, Name: "demo"}, ns, theirs, func(install *action.Install) { install.ServerSideApply = serverSide })
				before := e.get("apps/v1", "Deployment", ns, "app")

				ours := chart{version: "2", manifest: strings.Replace(theirDeployment, "{dropped: later}", "{}", 1) + configMap("kept", "ours")}
				want := e.want(ns, ours)
				want.Adoption, want.DeletionPolicy = addonsv1.AdoptionPolicyAdopt, addonsv1.DeletionPolicyOrphan
				e.install(want)
				after := e.get("apps/v1", "Deployment", ns, "app")
				e.Expect(after.GetUID()).To(Equal(before.GetUID()))
				e.Expect(after.Object["spec"]).To(Equal(before.Object["spec"]), "its pods stay as they are")
				e.Expect(after.GetAnnotations()).NotTo(HaveKey("dropped"), "what the chart dropped is nobody's any more")
				e.Expect(e.get("v1", "ConfigMap", ns, "kept").Object["data"]).To(HaveKeyWithValue("key", "ours"))
				e.Expect(e.get("v1", "ConfigMap", ns, "old")).To(BeNil(), "that was in their manifest alone")

				e.Expect(e.remove(want.Release).Gone).To(BeTrue())
				e.helmUpgradesLeft(ns, theirChart("3", theirDeployment+configMap("kept", "theirs again")))
				e.Expect(e.get("v1", "ConfigMap", ns, "kept").Object["data"]).To(HaveKeyWithValue("key", "theirs again"))
				e.Expect(e.get("apps/v1", "Deployment", ns, "app").Object["spec"]).To(Equal(before.Object["spec"]))
			})
		}
	}
}

// TestAdoptedReleaseOfAnotherName takes over releases whose record isn't where the add-on's is:
// Flux has a namespace for records, and Flux and the Helm add-on provider make names up.
func TestAdoptedReleaseOfAnotherName(t *testing.T) {
	for title, previous := range map[string]struct {
		name      string
		elsewhere bool // its record is
	}{
		"another name":      {name: "demo-1700000000"},
		"another namespace": {name: "demo", elsewhere: true},
		"both":              {name: "apps-demo", elsewhere: true},
	} {
		t.Run(title, func(t *testing.T) {
			e, ns := alone(t)
			storage := ns
			if previous.elsewhere {
				storage = e.namespace()
			}
			e.helmInstalls(deliver.Release{Namespace: ns, Name: previous.name}, storage, theirChart("1", theirDeployment+configMap("kept", "theirs")+configMap("old", "theirs")))
			before := e.get("apps/v1", "Deployment", ns, "app")

			// Installed for the first time, it would run the hook of an installation.
			ours := chart{
				version: "2", manifest: strings.Replace(theirDeployment, "{dropped: later}", "{}", 1) + configMap("kept", "ours"),
				hooks: []job.Hook{{Name: "first", Kind: "ConfigMap", Path: "first.yaml", Manifest: configMap("first", "x"), Events: []string{"pre-install"}}},
			}
			want := e.want(ns, ours)
			want.AdoptRelease = deliver.Release{Namespace: storage, Name: previous.name}
			want.Adoption, want.DeletionPolicy = addonsv1.AdoptionPolicyAdopt, addonsv1.DeletionPolicyOrphan
			e.install(want)
			after := e.get("apps/v1", "Deployment", ns, "app")
			e.Expect(after.GetUID()).To(Equal(before.GetUID()))
			e.Expect(after.Object["spec"]).To(Equal(before.Object["spec"]), "its pods stay as they are")
			e.Expect(e.get("v1", "ConfigMap", ns, "kept").Object["data"]).To(HaveKeyWithValue("key", "ours"))
			e.Expect(e.get("v1", "ConfigMap", ns, "old")).To(BeNil(), "that was in their manifest alone")
			e.Expect(e.get("v1", "ConfigMap", ns, "first")).To(BeNil(), "it was installed already")
			e.Expect(e.get("v1", "Secret", storage, "sh.helm.release.v1."+previous.name+".v1")).To(BeNil(), "`helm uninstall` would take all objects with it")

			e.Expect(e.remove(want.Release).Gone).To(BeTrue())
			e.helmUpgradesLeft(ns, theirChart("3", theirDeployment+configMap("kept", "theirs again")))
			e.Expect(e.get("apps/v1", "Deployment", ns, "app").Object["spec"]).To(Equal(before.Object["spec"]))
		})
	}
}

// TestCrashWhileAdopting cuts the connection after each write of a takeover.
func TestCrashWhileAdopting(t *testing.T) {
	long.InCI(t)
	e := newEnv(t)
	run := func(cut int) []string {
		ns, storage := e.namespace(), e.namespace()
		e.helmInstalls(deliver.Release{Namespace: ns, Name: "previous"}, storage, theirChart("1", configMap("kept", "theirs")+configMap("old", "theirs")))
		want := e.want(ns, chart{version: "2", manifest: configMap("kept", "ours") + configMap("new", "ours")})
		want.AdoptRelease, want.Adoption = deliver.Release{Namespace: storage, Name: "previous"}, addonsv1.AdoptionPolicyAdopt
		e.meter.reset()
		e.meter.cut(cut, true)
		if e.settle(want); cut > 0 {
			e.restart()
			e.install(want)
		}
		e.Expect(e.get("v1", "Secret", storage, "sh.helm.release.v1.previous.v1")).To(BeNil(), "after write %d", cut)
		return e.snapshot(ns)
	}
	whole := run(0)
	_, writes := e.meter.total()
	e.Expect(whole).NotTo(ContainElement(ContainSubstring("ConfigMap/old")))
	for cut := 1; cut <= writes; cut++ {
		e.Expect(run(cut)).To(Equal(whole), "after write %d of %d", cut, writes)
	}
}

// TestAdoptedReleaseIsAnAddonMeanwhile has another add-on take over the release itself before the one that adopts it is
// ready: the record of that add-on stays.
func TestAdoptedReleaseIsAnAddonMeanwhile(t *testing.T) {
	e, ns := beside(t)
	previous := deliver.Release{Namespace: ns, Name: "previous"}
	e.helmInstalls(previous, ns, theirChart("1", configMap("kept", "theirs")))
	holds := false
	want := e.want(ns, chart{version: "2", manifest: configMap("kept", "ours")})
	want.AdoptRelease, want.Adoption = previous, addonsv1.AdoptionPolicyAdopt
	want.Postcondition = func(context.Context) (string, time.Duration, error) {
		if holds {
			return "", 0, nil
		}
		return "more", time.Second, nil
	}
	e.ensureAs(want, deliver.ReasonWaitingForPostcondition)
	another := e.wantNamed("previous", ns, chart{version: "1", manifest: configMap("other", "x")})
	another.Adoption = addonsv1.AdoptionPolicyAdopt
	e.install(another)

	holds = true
	e.install(want)
	e.Expect(e.get("v1", "Secret", ns, "sh.helm.release.v1.previous.v1")).To(BeNil(), "Helm's own record goes")
	e.Expect(e.records(ns)).To(HaveKeyWithValue(previous, HaveField("Owned", true)))
	e.Expect(e.remove(previous).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "other")).To(BeNil())
	e.Expect(e.get("v1", "ConfigMap", ns, "kept")).NotTo(BeNil())
}

// TestReleaseThatCannotBeAdopted leaves alone what adoptRelease names by mistake.
func TestReleaseThatCannotBeAdopted(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	ns, other := e.namespace(), e.namespace()
	e.helmInstalls(deliver.Release{Namespace: other, Name: "theirs"}, other, theirChart("1", configMap("a", "theirs")))
	addon := e.wantNamed("another", ns, chart{version: "1", manifest: configMap("b", "another add-on's")})
	e.install(addon)

	want := e.want(ns, chart{version: "1", manifest: configMap("c", "ours")})
	want.Adoption = addonsv1.AdoptionPolicyAdopt
	for previous, reason := range map[deliver.Release]string{
		{Namespace: other, Name: "theirs"}: deliver.ReasonReleaseExists, // its objects are in another namespace
		addon.Release:                      deliver.ReasonReleaseOwnedByOther,
	} {
		want.AdoptRelease = previous
		want.Spec = previous.String()
		e.Expect(e.settle(want)).To(And(HaveField("Phase", addonsv1.AddonFailed), HaveField("Reason", reason)))
	}
	e.Expect(e.get("v1", "ConfigMap", other, "a")).NotTo(BeNil())
	e.Expect(e.get("v1", "ConfigMap", ns, "b")).NotTo(BeNil())
	e.Expect(e.get("v1", "ConfigMap", ns, "c")).To(BeNil(), "nothing was begun")

	want.AdoptRelease, want.Spec = deliver.Release{Namespace: other, Name: "none"}, "spec"
	e.install(want)
}

// helmInstalls installs a release with Helm's library, which keeps its records in the namespace
// storage.
func (e *env) helmInstalls(release deliver.Release, storage string, c *helmchart.Chart, more ...func(*action.Install)) {
	e.t.Helper()
	install := action.NewInstall(helmWith(e, release.Namespace, storage))
	install.ReleaseName, install.Namespace = release.Name, release.Namespace
	install.WaitStrategy, install.Timeout = helmkube.HookOnlyStrategy, time.Minute
	for _, change := range more {
		change(install)
	}
	_, err := install.Run(c, nil)
	e.Expect(err).NotTo(HaveOccurred())
}

// helmUpgradesLeft upgrades what an add-on has left, as the program helm does.
func (e *env) helmUpgradesLeft(ns string, c *helmchart.Chart) {
	e.t.Helper()
	previous := helmkube.ManagedFieldsManager
	helmkube.ManagedFieldsManager = "helm" // the name of that program
	defer func() { helmkube.ManagedFieldsManager = previous }()
	e.helmUpgrades(deliver.Release{Namespace: ns, Name: "demo"}, c, func(u *action.Upgrade) { u.ServerSideApply = "true" })
}

// helmUpgrades upgrades a release with Helm's library.
func (e *env) helmUpgrades(release deliver.Release, c *helmchart.Chart, change func(*action.Upgrade)) {
	e.t.Helper()
	upgrade := action.NewUpgrade(helm(e, release.Namespace))
	upgrade.Namespace = release.Namespace
	upgrade.WaitStrategy, upgrade.Timeout = helmkube.HookOnlyStrategy, time.Minute
	change(upgrade)
	_, err := upgrade.Run(release.Name, c, nil)
	e.Expect(err).NotTo(HaveOccurred())
}

// theirChart is a chart for Helm's library.
func theirChart(version, manifest string) *helmchart.Chart {
	return &helmchart.Chart{
		Metadata:  &helmchart.Metadata{APIVersion: "v2", Name: "demo", Version: version + ".0.0"},
		Templates: []*common.File{{Name: "templates/all.yaml", Data: []byte(manifest)}},
	}
}

// TestAdoptedManifests takes over what people applied with kubectl, without --server-side.
func TestAdoptedManifests(t *testing.T) {
	e, ns := alone(t)
	e.applyClientSide(ns, "a", map[string]string{"key": "theirs", "dropped": "later"})
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "ours")})
	want.Adoption = addonsv1.AdoptionPolicyAdopt
	e.install(want)
	live := e.get("v1", "ConfigMap", ns, "a")
	e.Expect(live.Object["data"]).To(Equal(map[string]any{"key": "ours"}))
	e.Expect(live.GetAnnotations()).NotTo(HaveKey("kubectl.kubernetes.io/last-applied-configuration"))
}

// applyClientSide makes a ConfigMap as `kubectl apply` does.
func (e *env) applyClientSide(ns, name string, data map[string]string) {
	e.t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: data}
	text, err := json.Marshal(o)
	e.Expect(err).NotTo(HaveOccurred())
	o.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(text)}
	e.Expect(e.target.Client.Create(e.ctx, o, client.FieldOwner("kubectl-client-side-apply"))).To(Succeed())
}
