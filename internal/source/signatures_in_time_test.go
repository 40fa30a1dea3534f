// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/signing"
	"github.com/cluster-chandler/chandler/test/targz"
)

func TestSignatureInTimeAndPlace(t *testing.T) {
	long.InCI(t)
	w := startSigned(t)
	t.Run("a hundred clusters verify once", func(t *testing.T) {
		digest := w.push(t, "hundred")
		signing.Attach(t, w.repository(t, "hundred"), digest, w.key.Sign(t, digest))
		ref := w.ref("hundred", byKeys(""))
		w.server.Requests(t)
		sources, before := w.sources(t), w.requests.Load()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { expectRefused(t, get(t, sources, ref), "") })
		}
		all.Wait()
		if got := w.server.Requests(t); len(got) != 5 {
			t.Errorf("requests\n%s\nwant 5: the manifest twice, the signature's and its text, the archive", strings.Join(got, "\n"))
		}
		must.Equal(t, 1, w.requests.Load()-before, "times that the key was read")
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
		expectRefused(t, err, failure.SignatureMissing)
		// Nor does knowing the digest of what isn't signed help.
		_, err = sources.Fetch(t.Context(), ref, digestOf(evil))
		expectRefused(t, err, failure.SignatureMissing)

		pinned := ref
		pinned.Chart.OCI = &addonsv1.OCISource{URL: ref.Chart.OCI.URL, PlainHTTP: ptr.To(true), Digest: good}
		expectFetched(t, sources, pinned)
		// The other's signature doesn't make what was resolved before its.
		moved := manifestDigest(t, w, "moving")
		signing.Attach(t, w.repository(t, "moving"), moved, w.key.Sign(t, moved))
		fresh := w.sources(t)
		_, err = fresh.Fetch(t.Context(), ref, digest)
		expectRefused(t, err, failure.ArtifactChanged)
	})
	t.Run("a signature moved from another artifact", func(t *testing.T) {
		signed, unsigned := w.push(t, "signed"), w.push(t, "unsigned-too")
		signing.Attach(t, w.repository(t, "unsigned-too"), unsigned, w.key.Sign(t, signed))
		expectRefused(t, get(t, w.sources(t), w.ref("unsigned-too", byKeys(""))), failure.SignatureInvalid)
	})
	t.Run("an older version at a newer tag", func(t *testing.T) {
		old := w.push(t, "rollback")
		signing.Attach(t, w.repository(t, "rollback"), old, w.key.Sign(t, old))
		described, err := w.repository(t, "rollback").Resolve(t.Context(), "1.0.0")
		must.Succeed(t, err)
		must.Succeed(t, w.repository(t, "rollback").Tag(t.Context(), described, "2.0.0"))
		ref := w.ref("rollback", byKeys(""))
		ref.Chart.Version = "2.0.0"
		expectRefused(t, get(t, w.sources(t), ref), failure.SignatureInvalid)
	})
	t.Run("keys rotate", func(t *testing.T) {
		digest := w.push(t, "rotating")
		signing.Attach(t, w.repository(t, "rotating"), digest, w.key.Sign(t, digest))
		w.set(secret("keys", "cosign.pub", string(w.key.Public)))
		sources := w.sources(t)
		ref := w.ref("rotating", &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{PublicKeys: []addonsv1.TrustReference{{Kind: reference.KindSecret, Name: "keys"}}}})
		fetched := expectFetched(t, sources, ref)
		version := sources.Version(t.Context(), ref)
		w.set(secret("keys", "cosign.pub", string(signing.NewKey(t).Public)))
		_, err := sources.Fetch(t.Context(), ref, fetched.Digest)
		expectRefused(t, err, failure.SignatureInvalid)
		if sources.Version(t.Context(), ref) != version || expectResolved(t, sources, ref) != fetched.Digest {
			t.Error("another key is another version")
		}
		w.set(secret("keys", "cosign.pub", string(w.key.Public)))
		expectFetched(t, sources, ref) // at once, though the failure is remembered
	})
	t.Run("it is signed later", func(t *testing.T) {
		digest := w.push(t, "later")
		sources, clock := remoteSources(t, source.Options{Client: w.cluster, Metadata: w.metadata()})
		ref := w.ref("later", byKeys(""))
		missing := asError(t, get(t, sources, ref))
		if missing.Reason != failure.SignatureMissing || !missing.Wait || missing.RetryAfter <= 0 || missing.RetryAfter > 2*retry.NotFound.Longest {
			t.Errorf("got %+v", missing)
		}
		signing.Attach(t, w.repository(t, "later"), digest, w.key.Sign(t, digest))
		clock.Step(2 * missing.RetryAfter) // of either, its version and its signature
		expectFetched(t, sources, ref)
	})
	t.Run("ten thousand signatures", func(t *testing.T) {
		for name, test := range map[string]struct {
			count  int
			reason string
		}{"many-layers": {500, failure.SignatureInvalid}, "too-many-layers": {10_000, failure.ArtifactTooLarge}, "many-bundles": {10_000, failure.SignatureInvalid}} {
			digest := w.push(t, name)
			to := w.repository(t, name)
			if name != "many-bundles" {
				signed := signing.NewKey(t).Sign(t, digest)
				signing.Attach(t, to, digest, slices.Repeat([]signing.Layer{signed}, test.count)...)
			} else {
				signing.ReferOften(t, to, digest, signing.NewKey(t).Bundle(t, digest, signing.SignaturePredicate), test.count)
			}
			w.server.Requests(t)
			expectRefused(t, get(t, w.sources(t), w.ref(name, byKeys(""))), test.reason)
			if requests := len(w.server.Requests(t)); requests > 4*32 {
				t.Errorf("%s: %d requests", name, requests)
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
		expectRefused(t, err, failure.SourceUnavailable)
	})
}

func manifestDigest(t *testing.T, w *signedWorld, name string) string {
	t.Helper()
	described, err := w.repository(t, name).Resolve(t.Context(), "1.0.0")
	must.Succeed(t, err)
	return described.Digest.String()
}
