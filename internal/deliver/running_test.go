// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// TestRunningHookIsAwaited changes what is wanted while a hook's Job runs.
func TestRunningHookIsAwaited(t *testing.T) {
	e, ns := beside(t)
	e.install(e.want(ns, chart{version: "1", manifest: configMap("a", "x")}))
	hooks := []job.Hook{hook("migrate", 0, jobText("migrate", true), []string{"pre-upgrade"}, "before-hook-creation")}
	of := func(version string) deliver.Desired {
		return e.want(ns, chart{version: version, manifest: configMap("a", version), hooks: hooks})
	}
	ensure := func(want deliver.Desired) deliver.Outcome {
		o := e.ensure(want)
		e.Expect(o.Reason).To(Equal(deliver.ReasonRunningHook), "%+v", o)
		return o
	}
	ensure(of("2"))
	uid := e.get("batch/v1", "Job", ns, "migrate").GetUID()
	e.Expect(ensure(of("3")).Revision).To(Equal(int32(2)))
	e.restart()
	ensure(of("3"))
	e.Expect(e.get("batch/v1", "Job", ns, "migrate").GetUID()).To(Equal(uid))
	e.Expect(e.records(ns)[of("3").Release].Revision).To(Equal(2), "there is no other revision yet")

	again := of("3")
	again.Again = true
	next := func(want deliver.Desired) {
		e.Eventually(func() int {
			e.ensure(want)
			return e.records(ns)[want.Release].Revision
		}).WithTimeout(20 * time.Second).Should(Equal(int(3)))
	}
	next(again)
	e.clock.step(2 * time.Minute) // its Job has no pod that runs
	want := of("4")
	e.Eventually(func() int {
		e.ensure(want)
		return e.records(ns)[want.Release].Revision
	}).WithTimeout(20 * time.Second).Should(Equal(4))
}

// TestWantedAgainWhilePreDeleteRuns has an add-on wanted again while the hook that prepares for its end runs.
func TestWantedAgainWhilePreDeleteRuns(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x"), hooks: []job.Hook{hook("bye", 0, jobText("bye", true), []string{"pre-delete"})}})
	e.install(want)
	o, err := e.d.Remove(e.ctx, e.target, want.Release)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(o.Reason).To(Equal(deliver.ReasonRunningHook))
	o = e.ensure(want)
	e.Expect(o.Reason).To(Equal(deliver.ReasonRunningHook), "it may be half-way")
	e.clock.step(2 * time.Minute)
	e.install(want)
	e.Eventually(func() any { return e.get("batch/v1", "Job", ns, "bye") }).WithTimeout(20 * time.Second).Should(BeNil())
}

// TestHooksOfOneNameInTwoNamespaces runs both.
func TestHooksOfOneNameInTwoNamespaces(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	ns, other := e.namespace(), e.namespace()
	in := func(ns string) job.Hook {
		return job.Hook{Name: "seed", Kind: "ConfigMap", Path: "demo/templates/" + ns + ".yaml", Manifest: namespaced(ns, configMap("seed", ns)), Events: []string{"pre-install"}}
	}
	e.install(e.want(ns, chart{version: "1", manifest: configMap("a", "x"), hooks: []job.Hook{in(ns), in(other)}}))
	e.Expect(e.get("v1", "ConfigMap", ns, "seed")).NotTo(BeNil())
	e.Expect(e.get("v1", "ConfigMap", other, "seed")).NotTo(BeNil())
}

// TestDataAsHook upgrades a chart whose claim and namespace are hooks.
func TestDataAsHook(t *testing.T) {
	e, ns := beside(t)
	claim := "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	space := fmt.Sprintf("---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s-data}\n", ns)
	events := []string{"pre-install", "pre-upgrade"}
	hooks := []job.Hook{
		{Name: "data", Kind: "PersistentVolumeClaim", Path: "demo/templates/data.yaml", Manifest: claim, Events: events, DeletePolicies: []string{"before-hook-creation"}},
		{Name: ns + "-data", Kind: "Namespace", Path: "demo/templates/ns.yaml", Manifest: space, Events: events, DeletePolicies: []string{"hook-succeeded"}},
	}
	of := func(version string) deliver.Desired {
		want := e.want(ns, chart{version: version, manifest: configMap("a", version), hooks: hooks})
		want.DataPolicy = addonsv1.DataPolicyKeep
		return want
	}
	e.install(of("1"))
	uids := func() []any {
		return []any{e.get("v1", "PersistentVolumeClaim", ns, "data").GetUID(), e.get("v1", "Namespace", "", ns+"-data").GetUID()}
	}
	before := uids()
	e.install(of("2"))
	e.Expect(uids()).To(Equal(before))
	e.Expect(e.get("v1", "PersistentVolumeClaim", ns, "data").GetDeletionTimestamp()).To(BeNil())
	e.Expect(e.get("v1", "Namespace", "", ns+"-data").GetDeletionTimestamp()).To(BeNil())
}

// TestRollbackIsRenewed tries again what was rolled back, when its certificates are to be renewed: once a day.
func TestRollbackIsRenewed(t *testing.T) {
	e, ns := beside(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	e.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(90 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	e.Expect(err).NotTo(HaveOccurred())
	pair, err := json.Marshal(map[string]string{"Cert": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), "Key": "k"})
	e.Expect(err).NotTo(HaveOccurred())
	rendered := 0
	of := func(c chart) deliver.Desired {
		want := e.rollingBack(ns, c)
		want.Render = func(context.Context, deliver.RenderInput) (*deliver.Rendering, error) {
			rendered++
			r := c.render(t)
			r.Generated = job.Generated{"genSelfSignedCert/x": string(pair)}
			return r, nil
		}
		return want
	}
	e.install(of(chart{version: "1", manifest: configMap("a", "1")}))
	bad := of(chart{version: "2", manifest: configMap("a", "2") + refused})
	rolledBack := func() deliver.Outcome {
		return e.reach(bad, deliver.ReasonRolledBack)
	}
	o := rolledBack()
	e.Expect(o.RetryAfter).To(BeNumerically("~", 60*24*time.Hour, time.Hour), "two thirds of its life")
	before := rendered
	e.clock.step(61 * 24 * time.Hour)
	o = rolledBack()
	e.Expect(rendered).To(Equal(before+1), "it was tried again")
	e.Expect(o.RetryAfter).To(BeNumerically("<=", 24*time.Hour))
}
