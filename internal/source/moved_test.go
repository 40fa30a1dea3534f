// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	repo "helm.sh/helm/v4/pkg/repo/v1"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/signing"
	"github.com/cluster-chandler/chandler/test/targz"
)

// A version that was taken, and is published with other content then, can't be had any
// more by the digest that it was pinned to.
func TestTakenVersionIsPublishedAnew(t *testing.T) {
	other := targz.Of(t, targz.Entry{Name: "demo/Chart.yaml", Data: "apiVersion: v2\nname: demo\nversion: 1.1.0\ndescription: again\n"})
	t.Run("helm", func(t *testing.T) {
		server, _ := startRepository(t, true, false)
		server.publish(t, repo.NewIndexFile(), "1.1.0", "", true)
		sources, clock := remoteSources(t, source.Options{})
		ref := plainly(inRepository(server.URL+"/charts", "1.1.0"))
		digest, err := sources.Pin(t.Context(), ref, "1.1.0", clock.Now())
		must.Succeed(t, err)
		again := repo.NewIndexFile()
		must.Succeed(t, again.MustAdd(&chart.Metadata{APIVersion: "v2", Name: "demo", Version: "1.1.0"}, "demo-1.1.0.tgz", "", digestOf(other)))
		index := filepath.Join(server.dir, "charts", "index.yaml")
		must.Succeed(t, again.WriteFile(index, 0o600))
		must.Succeed(t, os.Chtimes(index, time.Time{}, time.Now().Add(time.Hour)))
		ref.Chart.Helm.Digest = digest
		expectFetched(t, sources, ref) // it is still in memory
		elsewhere, _ := remoteSources(t, source.Options{})
		expectRefused(t, get(t, elsewhere, ref), failure.DigestMismatch)
	})
	t.Run("oci", func(t *testing.T) {
		server := registry.Start(t, registry.Options{PlainHTTP: true})
		server.Push(t, other, "charts/demo", "1.1.0")
		sources, _ := remoteSources(t, source.Options{})
		for _, kind := range []artifact.Kind{artifact.KindChart, artifact.KindKustomization, artifact.KindManifests, artifact.KindBundle} {
			ref := as(kind, plainly(inRegistry(server.URL("charts/demo"), "1.0.0")))
			expectRefused(t, get(t, sources, ref), failure.ArtifactNotFound)
			ref.Chart.OCI.Digest = digestOf("gone")
			expectRefused(t, get(t, sources, ref), failure.ArtifactNotFound)
		}
	})
}

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
