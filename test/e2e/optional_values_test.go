// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/registry"
)

// withOptional takes values from a Secret, if that is there.
func withOptional(secret string) func(*addonsv1.Addon) {
	return func(a *addonsv1.Addon) {
		a.ValuesFrom = []addonsv1.ValuesReference{{Kind: "Secret", Name: secret, Optional: ptr.To(true)}}
	}
}

// TestOptionalValuesDisappear takes away what an add-on was installed with.
func TestOptionalValuesDisappear(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn, s := newProd(t, 1)
	secret := func() *corev1.Secret {
		return tn.secret("values", map[string]string{"values.yaml": "text: from the Secret"})
	}
	tn.makeStack("base", nil, tn.small("settings", withOptional("values")))
	tn.awaitReady("base", "nothing optional is there")
	tn.create(secret())
	tn.awaitCluster("prod", "now it is", installedAs("settings", 2, ""))
	tn.settle()

	tn.remove(secret())
	missing := phase("settings", addonsv1.AddonPending, "ValuesNotFound", addonsv1.ReconcileNowAnnotation)
	tn.awaitCluster("prod", "it is gone, and that isn't thereby wanted", missing)
	tn.create(secret())
	tn.awaitReady("base", "it is back")
	tn.Expect(s.release(t, tn.namespace, "settings")).To(Equal(releaseState{2, "deployed"}))

	tn.stopManager()
	b := tn.backUp(true)
	tn.loseAll(b)
	for _, obj := range b.objects {
		if obj.GetName() != "values" {
			tn.restore(obj, true)
		}
	}
	tn.startManager()
	tn.awaitCluster("prod", "a restore left it behind", missing)
	tn.settle()
	tn.Expect(tn.configMapsOn(s)["settings"].Data).To(HaveKeyWithValue("text", "from the Secret"))
	change(tn, tn.clusterAddon("prod"), func(ca *addonsv1.ClusterAddon) { ca.Annotations = labels(addonsv1.ReconcileNowAnnotation + "=without") })
	tn.awaitReady("base", "somebody has agreed")
	tn.Expect(tn.configMapsOn(s)["settings"].Data).NotTo(HaveKeyWithValue("text", "from the Secret"))

	tn.create(secret())
	tn.awaitCluster("prod", "it is there again", installedAs("settings", 4, ""))
	tn.remove(secret())
	tn.awaitCluster("prod", "it is gone again", missing)
	tn.changeAddon("base", "settings", func(a *addonsv1.Addon) { a.ValuesFrom = nil })
	tn.awaitReady("base", "nothing takes values from it")
}

// TestChangeWaitsForTheSource changes values while the source of the chart is down.
func TestChangeWaitsForTheSource(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	server := registryOf(t, registry.Options{}, "1.0.0")
	tn.create(tn.secret("values", map[string]string{"values.yaml": "text: one"}))
	tn.makeCluster("prod", workloadServer(t, 1), nil)
	dir := trusting(t, server.CA)
	flag := "--credentials-dir=" + dir
	tn.startManager(flag)
	tn.makeStack("base", nil, tn.addon("settings", "", withOptional("values"), fromOCI(server.URL("charts/settings"), "1.0.0")))
	tn.awaitReady("base", "it is installed")
	tn.settle()
	tn.stopManager()
	server.Stop()
	change(tn, tn.secret("values", nil), func(s *corev1.Secret) { s.Data["values.yaml"] = []byte("text: two") })
	tn.startManager(flag)
	tn.awaitCluster("prod", "it doesn't have its values", condition(addonsv1.ReadyCondition, metav1.ConditionFalse, "", ""),
		phase("settings", addonsv1.AddonPending, "SourceUnavailable", ""))
	change(tn, tn.secret("values", nil), func(s *corev1.Secret) { s.Data["values.yaml"] = []byte("text: one") })
	tn.awaitCluster("prod", "now it does", ready("settings"))
}
