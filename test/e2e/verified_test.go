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

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/faulty"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/signing"
)

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
