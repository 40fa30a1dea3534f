// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/action"
	helmkube "helm.sh/helm/v4/pkg/kube"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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

// noise is a text of so many bytes, and a third more, that can't be compressed.
func noise(bytes int) string {
	random := make([]byte, bytes)
	_, _ = rand.Read(random)
	return base64.StdEncoding.EncodeToString(random)
}

// largeManifest is of a release whose record takes several Secrets.
func largeManifest() (manifest string) {
	for i := range 4 {
		manifest += configMap(fmt.Sprintf("c%d", i), noise(500_000))
	}
	return manifest
}

func TestLargeAddon(t *testing.T) {
	long.Test(t)
	e, ns := beside(t)
	c := chart{version: "1", manifest: largeManifest(), hooks: []job.Hook{hook("bye", 0, jobText("bye", false), []string{"pre-delete"})}}
	e.install(e.want(ns, c))
	releases, err := action.NewList(helm(e, ns)).Run()
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(releases).To(HaveLen(1))
	e.Expect(releases[0].(*helmrelease.Release).Manifest).To(ContainSubstring("too large"))

	// It can be resumed, and removed, from its parts.
	e.restart()
	want := e.want(ns, chart{version: "2", manifest: c.manifest + configMap("more", "x"), hooks: c.hooks})
	want.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "ConfigMap", Name: "more", Expression: "self.data.key == 'go'"}}
	o := e.ensureAs(want, deliver.ReasonWaitingForObjects)
	e.restart()
	e.apply("kubectl", strings.Replace(configMap("more", "go"), "name: more", "name: more\n  namespace: "+ns, 1))
	o, err = e.d.Ensure(e.ctx, e.target, want) // which repairs it
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(o.Reason).To(Equal(deliver.ReasonWaitingForObjects))
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.Expect(e.get("batch/v1", "Job", ns, "bye")).NotTo(BeNil())
	e.Expect(e.get("v1", "ConfigMap", ns, "c0")).To(BeNil())
	e.Expect(e.snapshot(ns)).To(ContainElement("0 secrets"))
}

func TestTooLargeAddon(t *testing.T) {
	e, ns := beside(t)
	o := e.settleAs(e.want(ns, chart{version: "1", manifest: configMap("a", noise(9<<20))}), deliver.ReasonRecordTooLarge)
	e.Expect(o.Message).To(ContainSubstring("8388608"))
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
	o := e.ensure(want)
	e.Expect(o.Phase).To(Equal(addonsv1.AddonPending))
	e.Expect(o.Reason).To(Equal(deliver.ReasonReleaseLocked))

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
