// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// TestForeignObject has an object in the cluster already that a chart wants to
// make.
func TestForeignObject(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	tn, s := newProd(t, 1)
	s.createNamespace(t, tn.namespace)
	foreign := tn.configMapOf("settings")
	foreign.Data = map[string]string{"text": "somebody's"}
	g.Expect(s.Create(t.Context(), foreign)).To(Succeed())
	start := s.mark(t)
	tn.makeStack("platform", nil, tn.small("settings"))
	tn.awaitCluster("prod", "by default an object of somebody else is left alone, and named",
		phase("settings", addonsv1.AddonFailed, "", "ConfigMap "+tn.namespace+"/settings"))
	tn.settle()
	g.Expect(s.Get(t.Context(), tn.key("settings"), foreign)).To(Succeed())
	g.Expect(foreign.Data).To(HaveKeyWithValue("text", "somebody's"))
	g.Expect(creations(start.requests(t, tn.clusterUser("prod")), "configmaps", "")).To(BeEmpty())

	uid := foreign.UID
	tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) { a.AdoptionPolicy = addonsv1.AdoptionPolicyAdopt })
	tn.awaitReady("platform", "with the policy Adopt it is taken over")
	g.Expect(s.Get(t.Context(), tn.key("settings"), foreign)).To(Succeed())
	g.Expect(foreign.UID).To(Equal(uid), "in place")
	g.Expect(foreign.Data).To(HaveKeyWithValue("text", "default"))
}

// TestLostRecord deletes what Chandler installed behind its back, as "helm
// uninstall" does.
func TestLostRecord(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	tn, s := newProd(t, 1)
	tn.install(tn.small("settings"))
	tn.settle()
	before := tn.configMapOf("settings")
	g.Expect(s.Get(t.Context(), tn.key("settings"), before)).To(Succeed())
	g.Expect(s.Delete(t.Context(), before)).To(Succeed())
	record := &corev1.Secret{ObjectMeta: tn.named("sh.helm.release.v1.settings.v1")}
	g.Expect(s.Delete(t.Context(), record)).To(Succeed())
	poll(t, patience, "an add-on that somebody uninstalled with Helm is to be installed again", func() error {
		now := tn.configMapOf("settings")
		if err := s.Get(t.Context(), tn.key("settings"), now); err != nil {
			return err
		}
		if now.UID == before.UID {
			return errors.New("it is the old object")
		}
		return nil
	})
	tn.awaitReady("platform", "and ready")
}
