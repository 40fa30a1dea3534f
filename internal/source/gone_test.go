// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"testing"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/signing"
	"github.com/cluster-chandler/chandler/test/targz"
)

// A cluster records what it installed. Its version is published again then, signed, and the
// cluster wants a signature from now on: what it recorded can't be had that way any more.
func TestRecordedDigestIsGone(t *testing.T) {
	w := startSigned(t)
	w.push(t, "charts/demo")
	recorded := expectFetched(t, w.sources(t), w.ref("charts/demo", nil)).Digest
	again := chartEntry("charts/demo")
	again.Data += "appVersion: again\n"
	manifest := w.server.Push(t, targz.Of(t, again), "charts/demo", "1.0.0")
	signing.Attach(t, w.repository(t, "charts/demo"), manifest, w.key.Sign(t, manifest))

	sources, verified := w.sources(t), w.ref("charts/demo", byKeys("cosign.pub"))
	for range 3 {
		_, err := sources.Fetch(t.Context(), verified, recorded)
		expectRefused(t, err, failure.ArtifactChanged)
	}
	now := sources.Current(t.Context(), verified, recorded)
	if now == recorded {
		t.Fatal("what the source no longer has is still asked for")
	}
	if _, err := sources.Fetch(t.Context(), verified, now); err != nil {
		t.Error(err)
	}
	if other := sources.Current(t.Context(), w.ref("charts/demo", nil), recorded); other != recorded {
		t.Error("who wants no signature, and can have it, is moved, too")
	}
}
