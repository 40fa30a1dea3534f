// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/faulty"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/signing"
)

// TestVerified installs a chart that is signed, and then publishes versions that
// aren't, or not by whom the stack wants.
func TestVerified(t *testing.T) {
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
	sign := func(manifest string, by signing.Key) {
		t.Helper()
		signing.Attach(t, repository, manifest, by.Sign(t, manifest))
	}
	sign(publish("1.0.0"), key)

	tn.startManager()
	tn.makeCluster("c", s, labels("env=prod"))
	tn.makeStack("platform", labels("env=prod"), tn.addon("settings", "", func(a *addonsv1.Addon) {
		a.Chart = addonsv1.ChartSource{
			OCI: &addonsv1.OCISource{URL: server.URL("charts/settings"), PlainHTTP: ptr.To(true)}, Version: "1.0.0",
			Verify: signedByKey(),
		}
	}))
	tn.awaitCluster("c", "nobody said which key", phase("settings", addonsv1.AddonPending, "VerificationPolicyInvalid",
		`chart.verify.cosign.publicKeys[0]: ConfigMap `+tn.namespace+`/release-keys, key "cosign.pub": there is no such ConfigMap`))

	keys := &corev1.ConfigMap{ObjectMeta: tn.named("release-keys"), Data: map[string]string{"cosign.pub": string(key.Public)}}
	tn.create(keys)
	tn.awaitCluster("c", "the chart is signed", ready("settings"), installedAs("settings", 1, "1.0.0"))

	follow := func(version string) {
		t.Helper()
		tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) { a.Chart.Version = version })
	}
	unsigned := publish("2.0.0")
	follow("2.0.0")
	tn.awaitCluster("c", "nobody signed it", phase("settings", addonsv1.AddonPending, "SignatureMissing", "it has no signature"), stillAt("settings", 1, "1.0.0"))
	NewWithT(t).Expect(s.release(t, tn.namespace, "settings").revision).To(Equal(1))

	sign(publish("3.0.0"), signing.NewKey(t))
	follow("3.0.0")
	tn.awaitCluster("c", "somebody else signed it", phase("settings", addonsv1.AddonFailed, "SignatureInvalid", "it is made with another key"), stillAt("settings", 1, "1.0.0"))
	NewWithT(t).Expect(s.release(t, tn.namespace, "settings").revision).To(Equal(1))

	sign(unsigned, key)
	follow("2.0.0")
	tn.awaitCluster("c", "it is signed now", ready("settings"), installedAs("settings", 2, "2.0.0"))

	tn.run("other keys change nothing that is installed", func(t *testing.T, tn *tenant) {
		change(tn, keys, func(c *corev1.ConfigMap) { c.Data["cosign.pub"] = string(signing.NewKey(t).Public) })
		tn.poke("c", "rotated")
		tn.settle()
		tn.awaitCluster("c", "it is installed", ready("settings"), installedAs("settings", 2, "2.0.0"))
	})
}

// stillAt expects an add-on to be installed at a revision and version, in whatever phase it is.
func stillAt(addon string, revision int32, version string) clusterCheck {
	return func(ca *addonsv1.ClusterAddon) error {
		wanted := *ca.DeepCopy()
		s := statusOf(&wanted, addon)
		if s == nil {
			return installedAs(addon, revision, version)(ca)
		}
		s.Phase, s.Reason = addonsv1.AddonReady, ""
		return installedAs(addon, revision, version)(&wanted)
	}
}

// TestMovedTag has registries that show another chart than before, at each moment of an
// installation: nothing of the other one may come into a cluster.
func TestMovedTag(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	origin, authority := registry.Start(t, registry.Options{PlainHTTP: true}), registry.NewAuthority(t)
	credentials := trusting(t, authority.PEM)
	key := signing.NewKey(t)
	tn.trust(key)
	evil := maps.Clone(configMapChart)
	evil["values.yaml"] = "text: evil\n"

	type swap struct {
		// at is the request before which the tag is moved: the first of these, or a later one.
		at  func(*http.Request) bool
		nth int
		// lie answers that request with the other chart, whatever it asks for.
		lie      bool
		verified bool
		reason   string // "" for Ready, with the first chart
	}
	byDigest := func(what string) func(*http.Request) bool {
		return func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/"+what+"/sha256:") }
	}
	tagged := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/manifests/1.0.0") }
	signature := func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/manifests/sha256-") }
	cases := map[string]swap{
		"before-the-pull":             {at: byDigest("blobs")},
		"before-the-verification":     {at: tagged, nth: 2, verified: true, reason: "SignatureMissing"},
		"before-the-signature":        {at: signature, verified: true},
		"before-the-verified-pull":    {at: byDigest("blobs"), verified: true},
		"in-place-of-the-pull":        {at: byDigest("blobs"), lie: true, reason: "DigestMismatch"},
		"in-place-of-the-signed-pull": {at: byDigest("blobs"), lie: true, verified: true, reason: "DigestMismatch|SignatureMissing|SignatureInvalid"},
	}
	servers, reasons := map[string]*faulty.Server{}, map[string]string{}
	var addons []addonsv1.Addon
	for name, c := range cases {
		p := publish(t, origin, name)
		if c.verified {
			signed := origin.Push(t, p.archives["oci"], name+"/settings", "1.0.0")
			signing.Attach(t, signing.Repository(t, origin, name+"/settings"), signed, key.Sign(t, signed))
		}
		other := evil.archive("settings", "1.0.0")
		var move sync.Once
		var seen atomic.Int64
		servers[name] = faulty.Start(t, authority, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !c.at(r) {
				p.ServeHTTP(w, r)
				return
			}
			if seen.Add(1) < int64(c.nth) {
				p.ServeHTTP(w, r)
				return
			}
			move.Do(func() { origin.Push(t, other, name+"/settings", "1.0.0") })
			if c.lie {
				_, _ = w.Write(other)
				return
			}
			p.ServeHTTP(w, r)
		}))
		addons = append(addons, tn.addon(name, "", func(a *addonsv1.Addon) {
			a.Chart = p.from("oci", servers[name])
			if c.verified {
				a.Chart.Verify = signedByKey()
			}
		}))
		reasons[name] = c.reason
	}
	tn.startManager("--credentials-dir=" + credentials)
	s := workloadServer(t, 1)
	tn.makeCluster("c", s, labels("env=prod"))
	tn.makeStack("platform", labels("env=prod"), addons...)
	tn.awaitCluster("c", "each add-on is the first chart, or none", func(ca *addonsv1.ClusterAddon) error { return fares(ca, reasons) })

	for name, c := range cases {
		g := NewWithT(t)
		lookups, swaps := 0, 0
		for _, r := range servers[name].Requests() {
			as := &http.Request{URL: &url.URL{Path: r.URI}}
			if tagged(as) {
				lookups++
			}
			if c.at(as) {
				swaps++
			}
		}
		g.Expect(swaps).To(BeNumerically(">=", max(1, c.nth)), "%s: the tag was moved", name)
		if !c.verified { // to find signatures, it is looked at again, and compared
			g.Expect(lookups).To(Equal(1), "%s: a tag is looked up once, and all else goes by digest", name)
		}
		text := tn.configMapOf(name)
		err := s.Get(t.Context(), tn.key(name), text)
		if c.reason != "" {
			g.Expect(err).To(HaveOccurred(), "%s: nothing is installed", name)
			continue
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(fmt.Sprint(text.Data)).To(Equal("map[text:default]"), "%s: it is the chart that the tag named first", name)
	}
}
