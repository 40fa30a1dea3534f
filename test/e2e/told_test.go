// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/signing"
)

// TestUnsignedIsToldOnce asks for versions that nobody signed, exact ones and then a
// range: what waits for somebody is an event, and nothing says that it was taken. One is signed by somebody else.
func TestUnsignedIsToldOnce(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 0)
	server := registry.Start(t, registry.Options{PlainHTTP: true})
	repository := signing.Repository(t, server, "charts/settings")
	key := signing.NewKey(t)
	publish := func(version string) string {
		t.Helper()
		return server.Push(t, configMapChart.archive("settings", version), "charts/settings", version)
	}
	signed := publish("1.17.4")
	signing.Attach(t, repository, signed, key.Sign(t, signed))
	publish("1.17.6")
	tn.startManager()
	tn.makeCluster("c", s, labels("env=prod"))
	settings := tn.addon("settings", "", func(a *addonsv1.Addon) {
		a.Chart = addonsv1.ChartSource{
			OCI: &addonsv1.OCISource{URL: server.URL("charts/settings"), PlainHTTP: ptr.To(true)}, Version: "1.17.4",
			Verify: signedByKey(),
		}
	})
	tn.makeStack("platform", labels("env=prod"), settings)
	tn.awaitEvent("VerificationPolicyInvalid", "Add-on settings is pending: addons[settings].chart.verify.cosign.publicKeys[0]: ConfigMap "+tn.namespace+"/release-keys")
	tn.trust(key)
	tn.awaitCluster("c", "it is signed", ready("settings"), installedAs("settings", 1, "1.17.4"))
	trustInstead := func(key signing.Key) {
		t.Helper()
		change(tn, &corev1.ConfigMap{ObjectMeta: tn.named("release-keys")}, func(c *corev1.ConfigMap) { c.Data["cosign.pub"] = string(key.Public) })
	}
	another := signing.NewKey(t)
	trustInstead(another)
	tn.poke("c", "rotated")
	tn.settle()
	tn.awaitCluster("c", "other keys change nothing that is installed", ready("settings"), installedAs("settings", 1, "1.17.4"))
	trustInstead(key)

	follow := func(version string) {
		t.Helper()
		tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) { a.Chart.Version = version })
	}
	follow("1.17.6")
	isUnsigned := phase("settings", addonsv1.AddonPending, "SignatureMissing", "it has no signature")
	tn.awaitCluster("c", "nobody signed it", isUnsigned, stillAt("settings", 1, "1.17.4"))
	tn.awaitEvent("SignatureMissing", "Add-on settings is pending: addons[settings].chart.oci: ")
	tn.settle()
	told := tn.warnings()
	tn.Expect(tn.warningsOf("ClusterAddon", "SignatureMissing")).To(Equal(1))
	for i := range 3 {
		tn.poke("c", fmt.Sprint("again ", i))
		tn.settle()
	}
	tn.restartAndLookAt("c")
	tn.awaitCluster("c", "nothing changed", isUnsigned)
	tn.Expect(tn.warnings()).To(ConsistOf(told), "neither a reconcile nor a restart is news")
	tn.Expect(tn.warningsOf("ClusterAddon", "SignatureMissing")).To(Equal(1))

	foreign := publish("1.17.7")
	signing.Attach(t, repository, foreign, another.Sign(t, foreign))
	follow("1.17.7")
	tn.awaitCluster("c", "somebody else signed it", phase("settings", addonsv1.AddonFailed, "SignatureInvalid", ""), stillAt("settings", 1, "1.17.4"))
	tn.Expect(s.release(t, tn.namespace, "settings").revision).To(Equal(1))
	follow("1.17.6")
	tn.awaitCluster("c", "nobody signed it still", isUnsigned)
	publish("1.17.8")
	follow("1.17.x")
	const says = "Version 1.17.8 wasn't accepted. The previous version 1.17.6 couldn't be checked. Clusters stay unchanged"
	takenUp := func(s *addonsv1.AddonStack) error {
		if s.Status.ObservedGeneration != s.Generation {
			return errors.New("the spec wasn't looked at")
		}
		return nil
	}
	stack := tn.awaitStatus("platform", "no version is signed", takenUp, sources(metav1.ConditionFalse, "SignatureMissing", says))
	tn.Expect(stack.Status.Following).To(BeEmpty(), "neither of them was taken")
	tn.Expect(checkCondition(stack, addonsv1.SourcesReadyCondition, metav1.ConditionFalse, "", "addons[settings].chart.oci: "+server.URL("charts/settings"))).To(Succeed())
	tn.awaitCluster("c", "it runs what is signed", stillAt("settings", 1, "1.17.4"))

	tn.makeStack("other", labels("env=test"), settings)
	tn.awaitReady("other", "its version is exact")
	tn.changeAddon("other", "settings", func(a *addonsv1.Addon) { a.Chart.Version = "1.17.x" })
	tn.awaitStatus("other", "the version that it named is signed", takenUp, followsAt("settings", "1.17.4", "1.17.8"),
		sources(metav1.ConditionFalse, "SignatureMissing", "So 1.17.8 isn't taken, it stays at 1.17.4"))
}

// TestStoppedSourceIsToldOnce stops the source of a fleet, and makes new clusters. The
// stack tells, and not each cluster; a restart with an emptied cache tells nothing.
func TestStoppedSourceIsToldOnce(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 0)
	server := registryOf(t, registry.Options{PlainHTTP: true}, "1.0.0")
	cache := filepath.Join(t.TempDir(), "cache")
	start := func() { tn.startManager("--cache-dir=" + cache) }
	start()
	tn.makeCluster("old", s, labels("env=prod"))
	tn.makeStack("platform", labels("env=prod"), tn.addon("settings", "", inNamespace(tn.namespace), fromOCI(server.URL("charts/settings"), "1.0.0", plainHTTP)))
	tn.awaitCluster("old", "it is there", ready("settings"))
	tn.Expect(tn.warnings()).To(BeEmpty())

	tn.stopManager()
	server.Stop()
	tn.Expect(os.RemoveAll(cache)).To(Succeed())
	start()
	tn.awaitReconcile("clusteraddon", 0)
	tn.settle()
	tn.awaitCluster("old", "nothing changed", ready("settings"))
	tn.Expect(tn.warnings()).To(BeEmpty(), "no event tells of an error")

	names := []string{"new-1", "new-2", "new-3"}
	for _, name := range names {
		tn.makeCluster(name, workloadServer(t, 0), labels("env=prod"))
	}
	waits := phase("settings", addonsv1.AddonPending, "SourceUnavailable", "refuses connections")
	for _, name := range names {
		tn.awaitCluster(name, "the source is down", waits)
	}
	tn.awaitStatus("platform", "the stack says so", sources(metav1.ConditionFalse, "SourceUnavailable", "refuses connections"))
	tn.awaitEvent("SourceUnavailable", "addons[settings].chart.oci: ")
	tn.stopManager()
	tn.Expect(os.RemoveAll(cache)).To(Succeed())
	start()
	for _, name := range names {
		tn.poke(name, "restarted")
	}
	tn.awaitReconcile("clusteraddon", float64(len(names)))
	for _, name := range names {
		tn.awaitCluster(name, "the source is still down", waits)
	}
	tn.Expect(tn.warnings()).To(ConsistOf(HavePrefix("AddonStack platform: SourceUnavailable: ")))
	tn.Expect(tn.warningsOf("AddonStack", "SourceUnavailable")).To(Equal(1))
}

// TestWaitingForABundleIsTold asks for a bundle that isn't there, and then for a chart
// that isn't in it.
func TestWaitingForABundleIsTold(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.startManager()
	bundle := &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{ConfigMap: &addonsv1.ArtifactReference{Name: "bundle", Key: "bundle.tgz"}}}
	stack := tn.newStack("platform", labels("env=prod"), tn.addon("cni", "", func(a *addonsv1.Addon) { a.Chart = addonsv1.ChartSource{Path: "cin"} }))
	stack.Spec.Source = bundle
	tn.create(stack)
	tn.awaitEvent("ArtifactNotFound", "The spec waits for its sources. spec.source.configMap: ConfigMap "+tn.namespace+"/bundle")

	files := map[string]string{}
	for name, text := range configMapChart.complete("cni", "1.0.0") {
		files["cni/"+name] = text
	}
	object := &corev1.ConfigMap{ObjectMeta: tn.named("bundle"), BinaryData: map[string][]byte{"bundle.tgz": tarball(files)}}
	tn.create(object)
	const says = `The bundle is there, but can't be used as the spec says. addons[cni].chart.path: "cin" of the bundle: `
	now := tn.awaitStatus("platform", "the path is wrong", sources(metav1.ConditionUnknown, "ArtifactNotFound", says))
	tn.settle()
	tn.Expect(slices.ContainsFunc(now.Status.Sources, func(from addonsv1.StackSource) bool {
		return from.Addon == addonsv1.FollowedSource && from.Conditions[0].Status != metav1.ConditionTrue
	})).To(BeFalse(), "the bundle itself is available")
	tn.changeAddon("platform", "cni", func(a *addonsv1.Addon) { a.Chart.Path = "cni" })
	tn.awaitStatus("platform", "it is in the bundle", func(s *addonsv1.AddonStack) error {
		return checkCondition(s, addonsv1.ReadyCondition, metav1.ConditionTrue, "", "")
	})
}

// warningsOf counts the events of a reason about objects of a kind, also those that were
// counted as one.
func (tn *tenant) warningsOf(kind, reason string) int {
	tn.t.Helper()
	n := 0
	for _, e := range tn.events() {
		if e.Regarding.Kind != kind || e.Reason != reason || !strings.EqualFold(e.Type, corev1.EventTypeWarning) {
			continue
		}
		if n++; e.Series != nil {
			n += int(e.Series.Count) - 1
		}
	}
	return n
}

// events are those of the tenant's namespace.
func (tn *tenant) events() []eventsv1.Event {
	tn.t.Helper()
	all := &eventsv1.EventList{}
	must.Succeed(tn.t, world.hub.List(tn.t.Context(), all, client.InNamespace(tn.namespace)))
	return all.Items
}

// notesThatBegin are those of the tenant's events of a reason that begin so.
func (tn *tenant) notesThatBegin(reason, start string) []string {
	tn.t.Helper()
	var notes []string
	for _, e := range tn.events() {
		if e.Reason == reason && strings.HasPrefix(e.Note, start) {
			notes = append(notes, e.Note)
		}
	}
	return notes
}
