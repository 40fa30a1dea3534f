// SPDX-License-Identifier: Apache-2.0

package source

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	repo "helm.sh/helm/v4/pkg/repo/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	orasremote "oras.land/oras-go/v2/registry/remote"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/policy"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/github"
	"github.com/cluster-chandler/chandler/test/realdata"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/signing"
	"github.com/cluster-chandler/chandler/test/targz"
)

const (
	workflow = "https://github.com/demo/charts/.github/workflows/release.yaml@refs/tags/v1"
	actions  = "https://token.actions.githubusercontent.com"
)

// signedWorld is a registry, and a cluster with what is trusted.
type signedWorld struct {
	*cluster
	server    *registry.Registry
	key       signing.Key
	authority *signing.Authority
	openpgp   signing.OpenPGPKey
}

func startSigned(t *testing.T) *signedWorld {
	t.Helper()
	w := &signedWorld{
		cluster: startCluster(t), server: registry.Start(t, registry.Options{PlainHTTP: true}),
		key: signing.NewKey(t), authority: signing.NewAuthority(t), openpgp: signing.NewOpenPGPKey(t, 0),
	}
	w.create(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "trust"},
		Data: map[string]string{
			"cosign.pub": string(w.key.Public), "other.pub": string(signing.NewKey(t).Public),
			"trusted_root.json": string(w.authority.TrustRoot(t, signing.Trust{Log: true, Timestamps: true})),
			"armored.asc":       string(w.openpgp.Armored), "garbage": "x",
		},
		BinaryData: map[string][]byte{"pubring.gpg": w.openpgp.Public},
	})
	return w
}

// sources of its own, that know nothing yet.
func (w *signedWorld) sources(t *testing.T) *Sources {
	t.Helper()
	sources, _ := remoteSources(t, Options{Client: w.counted, Metadata: w.metadata})
	return sources
}

func (w *signedWorld) repository(t *testing.T, name string) *orasremote.Repository {
	t.Helper()
	return signing.Repository(t, w.server, name)
}

// push publishes version 1.0.0, and returns the manifest's digest.
func (w *signedWorld) push(t *testing.T, name string) string {
	t.Helper()
	return w.server.Push(t, targz.Of(t, chartEntry(name)), name, "1.0.0")
}

// chartEntry makes a chart of its own for each name.
func chartEntry(name string) targz.Entry {
	return targz.Entry{Name: "demo/Chart.yaml", Data: "apiVersion: v2\nname: " + path.Base(name) + "\nversion: 1.0.0\ndescription: " + name + "\n"}
}

func (w *signedWorld) ref(name string, verify *addonsv1.Verification) reference.Reference {
	ref := inRegistry(w.server.URL(name), "1.0.0")
	ref.Chart.OCI.PlainHTTP, ref.Chart.Verify = ptr.To(true), verify
	return ref
}

func inTrust(key string) addonsv1.TrustReference {
	return addonsv1.TrustReference{Kind: reference.KindConfigMap, Name: "trust", Key: key}
}

func byKeys(keys ...string) *addonsv1.Verification {
	cosign := &addonsv1.CosignVerification{}
	for _, key := range keys {
		cosign.PublicKeys = append(cosign.PublicKeys, inTrust(key))
	}
	return &addonsv1.Verification{Cosign: cosign}
}

func byIdentity(issuer, subject string) *addonsv1.Verification {
	return &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{Keyless: &addonsv1.KeylessVerification{
		Identities: []addonsv1.CertificateIdentity{{Issuer: issuer, Subject: subject}}, TrustRoot: inTrust(""),
	}}}
}

func byKeyring(key string) *addonsv1.Verification {
	return &addonsv1.Verification{Provenance: &addonsv1.ProvenanceVerification{Keyring: inTrust(key)}}
}

// get resolves and fetches.
func get(t *testing.T, sources *Sources, ref reference.Reference) error {
	t.Helper()
	digest, err := sources.Resolve(t.Context(), ref)
	if err == nil {
		_, err = sources.Fetch(t.Context(), ref, digest)
	}
	return err
}

// expectRefused expects an error with that reason, and that part in its text.
func expectRefused(t *testing.T, err error, reason, part string) {
	t.Helper()
	if err == nil {
		t.Fatal("it isn't refused")
	}
	if known := asError(t, err); known.Reason != reason || !strings.Contains(err.Error(), part) {
		t.Errorf("got %s: %v\nwant %s with %q", known.Reason, err, reason, part)
	}
}

func TestSignedCharts(t *testing.T) {
	w := startSigned(t)
	us := signing.Certified{Subject: workflow, Issuer: actions}
	layer := func(sign func(digest string) signing.Layer) func(*testing.T, string, string) {
		return func(t *testing.T, name, digest string) {
			t.Helper()
			signing.Attach(t, w.repository(t, name), digest, sign(digest))
		}
	}
	bundle := func(sign func(digest string) []byte) func(*testing.T, string, string) {
		return func(t *testing.T, name, digest string) {
			t.Helper()
			signing.Refer(t, w.repository(t, name), digest, sign(digest))
		}
	}
	byKey := func(digest string) signing.Layer { return w.key.Sign(t, digest) }
	other := strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		sign   func(t *testing.T, name, digest string)
		verify *addonsv1.Verification
		reason string
		part   string
	}{
		"layer-by-key":    {sign: layer(byKey), verify: byKeys("cosign.pub")},
		"default-key":     {sign: layer(byKey), verify: byKeys("")},
		"one-of-two-keys": {sign: layer(byKey), verify: byKeys("other.pub", "cosign.pub")},
		"bundle-by-key":   {sign: bundle(func(d string) []byte { return w.key.Bundle(t, d, signing.SignaturePredicate) }), verify: byKeys("cosign.pub")},
		"layer-keyless":   {sign: layer(func(d string) signing.Layer { return w.authority.Sign(t, d, us) }), verify: byIdentity(actions, workflow)},
		"bundle-keyless":  {sign: bundle(func(d string) []byte { return w.authority.Bundle(t, d, signing.SignaturePredicate, us) }), verify: byIdentity(actions, workflow)},
		"after-others": {sign: func(t *testing.T, n, d string) {
			signing.Attach(t, w.repository(t, n), d, signing.NewKey(t).Sign(t, d), w.key.Sign(t, d), w.key.Sign(t, "sha256:"+other))
		}, verify: byKeys("")},
		"bundle-of-others": {sign: func(t *testing.T, n, d string) {
			for _, b := range [][]byte{w.key.Bundle(t, d, "https://slsa.dev/provenance/v1"), signing.NewKey(t).Bundle(t, d, signing.SignaturePredicate), w.key.Bundle(t, d, signing.SignaturePredicate)} {
				signing.Refer(t, w.repository(t, n), d, b)
			}
		}, verify: byKeys("")},

		"unsigned":  {verify: byKeys("cosign.pub"), reason: failure.SignatureMissing, part: "verify wants one by the key with SHA-256"},
		"other-key": {sign: layer(byKey), verify: byKeys("other.pub"), reason: failure.SignatureInvalid, part: "its signature doesn't count: it is made with another key"},
		"other-artifact": {sign: layer(func(string) signing.Layer { return w.key.Sign(t, "sha256:"+other) }), verify: byKeys(""),
			reason: failure.SignatureInvalid, part: "it is of another artifact, \"sha256:" + other},
		"only-statements": {sign: bundle(func(d string) []byte { return w.key.Bundle(t, d, "https://slsa.dev/provenance/v1") }), verify: byKeys(""),
			reason: failure.SignatureInvalid, part: "no signature but a statement"},
		"other-subject": {sign: layer(func(d string) signing.Layer { return w.authority.Sign(t, d, us) }), verify: byIdentity(actions, "someone@example.org"),
			reason: failure.SignatureInvalid, part: `it is by "` + workflow + `" of issuer "` + actions + `". verify wants one by someone@example.org of issuer ` + actions},
		"unlogged": {sign: bundle(func(d string) []byte {
			return w.authority.Bundle(t, d, signing.SignaturePredicate, signing.Certified{Subject: workflow, Issuer: actions, Unlogged: true, Untimed: true})
		}), verify: byIdentity(actions, workflow), reason: failure.SignatureInvalid, part: "no transparency log of the trust root"},
		"garbage-bundle": {sign: bundle(func(string) []byte { return []byte("garbage") }), verify: byKeys(""), reason: failure.SignatureInvalid, part: "no Sigstore bundle"},
		"large-bundle":   {sign: bundle(func(string) []byte { return make([]byte, 1<<20+1) }), verify: byKeys(""), reason: failure.SignatureInvalid, part: "the registry doesn't have all of it"},
		"large-layer": {sign: layer(func(string) signing.Layer { return signing.Layer{Payload: make([]byte, 64<<10+1)} }), verify: byKeys(""),
			reason: failure.SignatureInvalid, part: "the registry doesn't have all of it"},
		"no-layers": {sign: func(t *testing.T, n, d string) { signing.Attach(t, w.repository(t, n), d) }, verify: byKeys(""), reason: failure.SignatureMissing, part: "has no signature"},

		"no-object": {verify: &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{PublicKeys: []addonsv1.TrustReference{{Kind: reference.KindSecret, Name: "gone"}}}},
			reason: failure.VerificationPolicyInvalid, part: `chart.verify.cosign.publicKeys[0]: Secret team-a/gone, key "cosign.pub": there is no such Secret; create it in this namespace`},
		"no-key":        {verify: byKeys("cosign.pub", "gone"), reason: failure.VerificationPolicyInvalid, part: `chart.verify.cosign.publicKeys[1]: ConfigMap team-a/trust, key "gone": there is no such key`},
		"no-pem":        {verify: byKeys("garbage"), reason: failure.VerificationPolicyInvalid, part: "it is no public key in PEM"},
		"no-keyring":    {verify: byKeyring("garbage"), reason: failure.VerificationPolicyInvalid, part: `chart.verify.provenance.keyring: ConfigMap team-a/trust, key "garbage": it has no OpenPGP public keys`},
		"no-provenance": {verify: byKeyring(""), reason: failure.SignatureMissing, part: "there is no layer of type application/vnd.cncf.helm.chart.provenance.v1.prov"},
	} {
		t.Run(name, func(t *testing.T) {
			digest := w.push(t, name)
			if c.sign != nil {
				c.sign(t, name, digest)
			}
			sources := w.sources(t)
			err := get(t, sources, w.ref(name, c.verify))
			if c.reason == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			expectRefused(t, err, c.reason, c.part)
			// Who doesn't ask for a signature gets it, and that opens no door to those who do.
			expectFetched(t, sources, w.ref(name, nil))
			expectRefused(t, get(t, sources, w.ref(name, c.verify)), c.reason, c.part)
		})
	}
}

func TestSignatureInTimeAndPlace(t *testing.T) {
	w := startSigned(t)
	t.Run("a hundred clusters verify once", func(t *testing.T) {
		signing.Attach(t, w.repository(t, "hundred"), w.push(t, "hundred"), w.key.Sign(t, manifestDigest(t, w, "hundred")))
		sources := w.sources(t)
		ref := w.ref("hundred", byKeys(""))
		expectFetched(t, sources, ref) // the metadata cache knows the key
		w.server.Requests(t)
		sources, before := w.sources(t), w.counted.requests.Load()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				digest, err := sources.Resolve(t.Context(), ref)
				if err == nil {
					_, err = sources.Fetch(t.Context(), ref, digest)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := w.server.Requests(t); len(got) != 5 {
			t.Errorf("requests\n%s\nwant 5: the manifest twice, the signature's and its text, the archive", strings.Join(got, "\n"))
		}
		if got := w.counted.requests.Load() - before; got != 1 {
			t.Errorf("the key was read %d times", got)
		}
	})
	t.Run("the tag moves between verification and fetch", func(t *testing.T) {
		good := w.push(t, "moving")
		signing.Attach(t, w.repository(t, "moving"), good, w.key.Sign(t, good))
		sources := w.sources(t)
		ref := w.ref("moving", byKeys(""))
		digest := expectResolved(t, sources, ref)
		evil := targz.Of(t, chartEntry("evil"))
		w.server.Push(t, evil, "moving", "1.0.0")
		_, err := sources.Fetch(t.Context(), ref, digest)
		expectRefused(t, err, failure.SignatureMissing, "it has no signature")
		// Nor does knowing the digest of what isn't signed help.
		_, err = sources.Fetch(t.Context(), ref, (artifact.Content{Archive: evil}).Digest())
		expectRefused(t, err, failure.SignatureMissing, "it has no signature")

		pinned := ref
		pinned.Chart.OCI = &addonsv1.OCISource{URL: ref.Chart.OCI.URL, PlainHTTP: ptr.To(true), Digest: good}
		expectFetched(t, sources, pinned)
		// The other's signature doesn't make what was resolved before its.
		moved := manifestDigest(t, w, "moving")
		signing.Attach(t, w.repository(t, "moving"), moved, w.key.Sign(t, moved))
		fresh := w.sources(t)
		_, err = fresh.Fetch(t.Context(), ref, digest)
		expectRefused(t, err, failure.ArtifactChanged, "the source no longer has the content")
	})
	t.Run("a signature moved from another artifact", func(t *testing.T) {
		signed, unsigned := w.push(t, "signed"), w.push(t, "unsigned-too")
		signing.Attach(t, w.repository(t, "unsigned-too"), unsigned, w.key.Sign(t, signed))
		expectRefused(t, get(t, w.sources(t), w.ref("unsigned-too", byKeys(""))), failure.SignatureInvalid, "it is of another artifact, \""+signed)
	})
	t.Run("an older version at a newer tag", func(t *testing.T) {
		old := w.push(t, "rollback")
		signing.Attach(t, w.repository(t, "rollback"), old, w.key.Sign(t, old))
		described, err := w.repository(t, "rollback").Resolve(t.Context(), "1.0.0")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.repository(t, "rollback").Tag(t.Context(), described, "2.0.0"); err != nil {
			t.Fatal(err)
		}
		ref := w.ref("rollback", byKeys(""))
		ref.Chart.Version = "2.0.0"
		expectRefused(t, get(t, w.sources(t), ref), failure.SignatureInvalid, `what is signed is version "1.0.0" of the chart`)
	})
	t.Run("keys rotate", func(t *testing.T) {
		digest := w.push(t, "rotating")
		signing.Attach(t, w.repository(t, "rotating"), digest, w.key.Sign(t, digest))
		keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "keys"}, Data: map[string][]byte{"cosign.pub": w.key.Public}}
		w.create(t, keys)
		sources := w.sources(t)
		ref := w.ref("rotating", &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{PublicKeys: []addonsv1.TrustReference{{Kind: reference.KindSecret, Name: "keys"}}}})
		artifact := expectFetched(t, sources, ref)
		version := sources.Version(t.Context(), ref)
		change := func(public []byte) {
			t.Helper()
			keys.Data["cosign.pub"] = public
			w.update(t, keys)
			for w.metadataVersion(t, keys) != keys.ResourceVersion {
				time.Sleep(5 * time.Millisecond)
			}
		}
		change(signing.NewKey(t).Public)
		_, err := sources.Fetch(t.Context(), ref, artifact.Digest)
		expectRefused(t, err, failure.SignatureInvalid, "made with another key")
		if sources.Version(t.Context(), ref) != version || expectResolved(t, sources, ref) != artifact.Digest {
			t.Error("another key is another version")
		}
		change(w.key.Public)
		expectFetched(t, sources, ref) // at once, though the failure is remembered
	})
	t.Run("it is signed later", func(t *testing.T) {
		digest := w.push(t, "later")
		sources, clock := remoteSources(t, Options{Client: w.counted, Metadata: w.metadata})
		ref := w.ref("later", byKeys(""))
		missing := asError(t, get(t, sources, ref))
		if missing.Reason != failure.SignatureMissing || !missing.Wait || missing.RetryAfter <= 0 || missing.RetryAfter > 2*failure.MaxNotFound {
			t.Errorf("got %+v", missing)
		}
		signing.Attach(t, w.repository(t, "later"), digest, w.key.Sign(t, digest))
		clock.Step(2 * missing.RetryAfter) // of either, its version and its signature
		expectFetched(t, sources, ref)
	})
	t.Run("ten thousand signatures", func(t *testing.T) {
		for name, count := range map[string]int{"many-layers": 2000, "too-many-layers": 10_000, "many-bundles": 10_000} { // a manifest of 1 MiB has room for 3000
			digest := w.push(t, name)
			to := w.repository(t, name)
			if name != "many-bundles" {
				signed := signing.NewKey(t).Sign(t, digest)
				signing.Attach(t, to, digest, slices.Repeat([]signing.Layer{signed}, count)...)
			} else {
				signing.ReferOften(t, to, digest, signing.NewKey(t).Bundle(t, digest, signing.SignaturePredicate), count)
			}
			w.server.Requests(t)
			start := time.Now()
			err := get(t, w.sources(t), w.ref(name, byKeys("")))
			took, requests := time.Since(start), len(w.server.Requests(t))
			expectRefused(t, err, failure.SignatureInvalid, "")
			t.Logf("%s: refused in %s with %d requests: %v", name, took.Round(time.Millisecond), requests, err)
			if took > 5*time.Second || requests > 4*32 {
				t.Error("that is too much")
			}
		}
	})
	t.Run("a registry that is down says so", func(t *testing.T) {
		digest := w.push(t, "down")
		signing.Attach(t, w.repository(t, "down"), digest, w.key.Sign(t, digest))
		sources := w.sources(t)
		ref := w.ref("down", byKeys(""))
		resolved := expectResolved(t, sources, ref)
		w.server.Stop()
		_, err := sources.Fetch(t.Context(), ref, resolved)
		expectRefused(t, err, failure.SourceUnavailable, "refuses connections")
	})
}

func manifestDigest(t *testing.T, w *signedWorld, name string) string {
	t.Helper()
	described, err := w.repository(t, name).Resolve(t.Context(), "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	return described.Digest.String()
}

func TestProvenanceOfCharts(t *testing.T) {
	w := startSigned(t)
	t.Run("in a Helm repository", func(t *testing.T) {
		server, _ := startRepository(t, true, false)
		index := repo.NewIndexFile()
		file := func(version string) string { return filepath.Join(server.dir, "charts", "demo-"+version+".tgz.prov") }
		good := server.publish(t, index, "1.0.0", "", true)
		write(t, file("1.0.0"), string(w.openpgp.Provenance(t, good, "demo-1.0.0.tgz")))
		unnamed := server.publish(t, index, "1.1.0", "", false)
		write(t, file("1.1.0"), string(w.openpgp.Provenance(t, unnamed, "demo-1.1.0.tgz")))
		other := server.publish(t, index, "1.2.0", "", true)
		write(t, file("1.2.0"), string(signing.NewOpenPGPKey(t, 0).Provenance(t, other, "demo-1.2.0.tgz")))
		server.publish(t, index, "1.3.0", "", true)
		write(t, file("1.3.0"), string(w.openpgp.Provenance(t, good, "demo-1.0.0.tgz")))
		server.publish(t, index, "1.4.0", "", true)
		renamed := server.publish(t, index, "1.5.0", "", true)
		write(t, file("1.5.0"), string(w.openpgp.Provenance(t, renamed, "other-1.5.0.tgz")))
		server.publish(t, index, "1.6.0", "", true)
		write(t, file("1.6.0"), strings.Repeat("x", policy.MaxProvenance+1))
		for version, want := range map[string]struct{ reason, part string }{
			"1.0.0": {}, "v1.0.0": {}, "1.1.0": {},
			"1.2.0": {failure.SignatureInvalid, "a key that isn't in the keyring. verify wants demo-1.2.0.tgz to be signed by the OpenPGP key "},
			"1.3.0": {failure.SignatureInvalid, `it is of another archive, "demo-1.0.0.tgz"`},
			"1.4.0": {failure.SignatureMissing, `there is no "demo-1.4.0.tgz.prov" beside the archive`},
			"1.5.0": {failure.SignatureInvalid, `says that it is "other-1.5.0.tgz"`},
			"1.6.0": {failure.ArtifactTooLarge, "the provenance file is larger"},
		} {
			for _, keyring := range []string{"", "armored.asc"} {
				t.Run(version+keyring, func(t *testing.T) {
					ref := inRepository(server.URL+"/charts", version)
					ref.Chart.Helm.PlainHTTP, ref.Chart.Verify = ptr.To(true), byKeyring(keyring)
					err := get(t, w.sources(t), ref)
					if want.reason != "" {
						expectRefused(t, err, want.reason, want.part)
					} else if err != nil {
						t.Error(err)
					}
				})
			}
		}
	})
	t.Run("in a release", func(t *testing.T) {
		server := github.Start(t, github.Options{PlainHTTP: true})
		archive, other := targz.Of(t, chartEntry("a")), targz.Of(t, chartEntry("b"))
		good := w.openpgp.Provenance(t, archive, "demo-1.0.0.tgz")
		for tag, tc := range map[string]struct {
			files        []github.File
			reason, part string
		}{
			"1.0.0":  {[]github.File{{Name: "demo-1.0.0.tgz", Data: archive}, {Name: "demo-1.0.0.tgz.prov", Data: good}}, "", ""},
			"v1.0.0": {[]github.File{{Name: "demo-1.0.0.tgz", Data: archive}, {Name: "demo-1.0.0.tgz.prov", Data: good}}, "", ""},
			"none":   {[]github.File{{Name: "demo-1.0.0.tgz", Data: archive}, {Name: "other.prov", Data: good}}, failure.SignatureMissing, `the release has no file "demo-1.0.0.tgz.prov"`},
			"other":  {[]github.File{{Name: "demo-1.0.0.tgz", Data: other}, {Name: "demo-1.0.0.tgz.prov", Data: good}}, failure.SignatureInvalid, `it is of another archive, "demo-1.0.0.tgz"`},
			"named":  {[]github.File{{Name: "demo-1.0.0.tgz", Data: other}, {Name: "demo-1.0.0.tgz.prov", Data: w.openpgp.Provenance(t, other, "else-1.0.0.tgz")}}, failure.SignatureInvalid, `says that it is "else-1.0.0.tgz"`},
			"1.1.0":  {[]github.File{{Name: "demo-1.1.0.tgz", Data: archive}, {Name: "demo-1.1.0.tgz.prov", Data: good}}, failure.SignatureInvalid, `what is signed is version "1.0.0"`},
			"large":  {[]github.File{{Name: "demo-1.0.0.tgz", Data: archive}, {Name: "demo-1.0.0.tgz.prov", Data: make([]byte, policy.MaxProvenance+1)}}, failure.ArtifactTooLarge, "the provenance file is larger"},
		} {
			server.Publish("demo/charts", github.Release{Tag: tag, Files: tc.files})
			err := get(t, w.sources(t), reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{
				GitHub: &addonsv1.GitHubSource{URL: server.URL("demo/charts"), Asset: "demo-*.tgz", PlainHTTP: ptr.To(true)}, Version: tag, Verify: byKeyring(""),
			}})
			if tc.reason != "" {
				expectRefused(t, err, tc.reason, tc.part)
			} else if err != nil {
				t.Errorf("%s: %v", tag, err)
			}
		}
	})
	t.Run("in a registry", func(t *testing.T) {
		archive := targz.Of(t, chartEntry("provenance"))
		good := w.openpgp.Provenance(t, archive, "demo-1.0.0.tgz")
		w.server.PushWithProvenance(t, archive, good, "prov/demo", "1.0.0")
		if err := get(t, w.sources(t), w.ref("prov/demo", byKeyring(""))); err != nil {
			t.Error(err)
		}
		w.server.PushWithProvenance(t, archive, signing.NewOpenPGPKey(t, 0).Provenance(t, archive, "demo-1.0.0.tgz"), "other/demo", "1.0.0")
		expectRefused(t, get(t, w.sources(t), w.ref("other/demo", byKeyring(""))), failure.SignatureInvalid, "a key that isn't in the keyring")
		w.server.PushWithProvenance(t, targz.Of(t, chartEntry("x")), good, "swapped/demo", "1.0.0")
		expectRefused(t, get(t, w.sources(t), w.ref("swapped/demo", byKeyring(""))), failure.SignatureInvalid, "it is of another archive")
	})
}

// It reports what verification costs, on top of the fetch.
func TestVerificationTime(t *testing.T) {
	w := startSigned(t)
	archive := realdata.Read(t, "charts", "cilium-1.20.0.tgz")
	digest := w.server.Push(t, archive, "cilium", "1.20.0")
	to := w.repository(t, "cilium")
	signing.Attach(t, to, digest, w.key.Sign(t, digest))
	signing.Refer(t, to, digest, w.authority.Bundle(t, digest, signing.SignaturePredicate, signing.Certified{Subject: workflow, Issuer: actions}))
	for name, verify := range map[string]*addonsv1.Verification{"unverified": nil, "key": byKeys(""), "keyless bundle": byIdentity(actions, workflow)} {
		sources := w.sources(t)
		ref := w.ref("cilium", verify)
		ref.Chart.Version = "1.20.0"
		resolved := expectResolved(t, sources, ref)
		w.server.Requests(t)
		start := time.Now()
		if err := sources.verifier.verify(t.Context(), ref, resolved); err != nil {
			t.Fatal(err)
		}
		first, requests := time.Since(start), len(w.server.Requests(t))
		start = time.Now()
		for range 1000 {
			if err := sources.verifier.verify(t.Context(), ref, resolved); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: %s with %d requests; again %s", name, first.Round(100*time.Microsecond), requests, time.Since(start)/1000)
		expectFetched(t, sources, ref)
	}
}
