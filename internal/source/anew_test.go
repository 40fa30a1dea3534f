// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	repo "helm.sh/helm/v4/pkg/repo/v1"
	"k8s.io/utils/ptr"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/targz"
)

// A version that was taken, and is published with other content then, can't be had any
// more. Whoever follows a range never wrote a digest, and is told what helps.
func TestTakenVersionIsPublishedAnew(t *testing.T) {
	other := targz.Of(t, targz.Entry{Name: "demo/Chart.yaml", Data: "apiVersion: v2\nname: demo\nversion: 1.1.0\ndescription: anew\n"})
	t.Run("helm", func(t *testing.T) {
		server, _ := startRepository(t, true, false)
		server.publish(t, repo.NewIndexFile(), "1.1.0", "", true)
		sources, clock := remoteSources(t, Options{})
		ref := inRepository(server.URL+"/charts", "1.1.0")
		ref.Chart.Helm.PlainHTTP = ptr.To(true)
		digest, err := sources.Pin(t.Context(), ref, "1.1.0", clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		anew := repo.NewIndexFile()
		is := artifact.Content{Archive: other}.Digest()
		if err := anew.MustAdd(&chart.Metadata{APIVersion: "v2", Name: "demo", Version: "1.1.0"}, "demo-1.1.0.tgz", "", is); err != nil {
			t.Fatal(err)
		}
		index := filepath.Join(server.dir, "charts", "index.yaml")
		if err := anew.WriteFile(index, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(index, time.Time{}, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		ref.Chart.Helm.Digest = digest
		elsewhere, _ := remoteSources(t, Options{})
		_, err = elsewhere.Fetch(t.Context(), ref, expectResolved(t, elsewhere, ref))
		expectError(t, err, failure.DigestMismatch, "chart.helm: "+server.URL+"/charts/demo 1.1.0@"+digest+
			": the index says that this version is "+is+", not helm.digest; correct one of helm.digest and version. "+place.IfFollowed)
	})
	t.Run("oci", func(t *testing.T) {
		server := registry.Start(t, registry.Options{})
		dir := t.TempDir()
		ownCredentialsFor(t, dir, server, "", "")
		server.Push(t, other, "charts/demo", "1.1.0")
		sources, _ := remoteSources(t, Options{CredentialsDir: dir})
		ref := inRegistry(server.URL("charts/demo"), "1.1.0")
		gone := artifact.Content{Archive: []byte("gone")}.Digest()
		ref.Chart.OCI.Digest = gone
		_, err := sources.Resolve(t.Context(), ref)
		expectError(t, err, failure.ArtifactNotFound, "chart.oci: "+server.URL("charts/demo")+"@"+gone+": the registry has no manifest "+gone+
			" of this chart, or doesn't show it to these credentials; publish it, or correct oci.url or oci.digest. "+place.IfFollowed)
	})
}
