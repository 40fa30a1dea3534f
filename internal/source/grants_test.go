// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/store"
	"github.com/cluster-chandler/chandler/test/registry"
)

// storeAt opens the store of a directory, as a process does when it starts.
func storeAt(dir string) *store.Store {
	return store.New(store.Options{Directory: dir, ArchiveBytes: artifact.DefaultArchiveBytes, Log: logr.Discard()})
}

func TestHundredClustersAndARestartAskOnce(t *testing.T) {
	server := registry.Start(t, registry.Options{PlainHTTP: true})
	server.Push(t, chartVersion(t, "1.0.0"), "demo", "1.0.0")
	server.Requests(t)
	dir := t.TempDir()
	digest := ""
	fetchAll := func(known bool) []string {
		sources, _ := remoteSources(t, Options{Store: storeAt(dir)})
		var done sync.WaitGroup
		for i := range 100 {
			done.Go(func() {
				ref := inRegistry(server.URL("demo"), "1.0.0")
				ref.Chart.OCI.PlainHTTP = ptr.To(true)
				ref.Namespace = fmt.Sprintf("team-%d", i%5)
				want := digest // as in the record of the cluster
				if !known {
					want = expectResolved(t, sources, ref)
				}
				if _, err := sources.Fetch(t.Context(), ref, want); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
		return server.Requests(t)
	}
	asked := fetchAll(false)
	if len(asked) != 2 {
		t.Fatalf("requests %q, want one for the manifest and one for the archive", asked)
	}
	_, digest, _ = strings.Cut(strings.TrimSuffix(asked[1], " 200"), "/blobs/")
	if asked := fetchAll(true); len(asked) != 0 {
		t.Errorf("after a restart, requests %q", asked)
	}

	damaged := filepath.Join(dir, "v1", strings.TrimPrefix(digest, "sha256:"))
	if err := os.WriteFile(damaged, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if asked := fetchAll(true); !slices.Equal(asked, []string{"GET /v2/demo/blobs/" + digest + " 200"}) {
		t.Errorf("when it is damaged, requests %q", asked)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if asked := fetchAll(true); !slices.Equal(asked, []string{"GET /v2/demo/blobs/" + digest + " 200"}) {
		t.Errorf("when the cache is emptied, requests %q", asked)
	}
	server.Stop()
	sources, _ := remoteSources(t, Options{Store: storeAt(dir)})
	ref := inRegistry(server.URL("demo"), "1.0.0")
	ref.Chart.OCI.PlainHTTP = ptr.To(true)
	if _, err := sources.Fetch(t.Context(), ref, digest); err != nil {
		t.Errorf("what was fetched is gone with the registry: %v", err)
	}
}

// Who names another team's digest gets nothing by that, be it in memory or on disk.
func TestDigestGivesNoRight(t *testing.T) {
	private := chartVersion(t, "1.0.0")
	digest := artifact.Content{Archive: private}.Digest()
	theirs, dir := serveAt(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(private) })
	// The spy's own server says all that a spy would say, but doesn't have the archive.
	var probed atomic.Int32
	own, _ := serveAt(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodHead:
			probed.Add(1)
			w.Header().Set("Docker-Content-Digest", digest)
			w.Header().Set("Content-Length", fmt.Sprint(len(private)))
		case strings.HasSuffix(r.URL.Path, "index.yaml"):
			fmt.Fprintf(w, "entries:\n  demo:\n  - version: 1.0.0\n    digest: %s\n    urls: [demo.tgz]\n", strings.TrimPrefix(digest, "sha256:"))
		case strings.Contains(r.URL.Path, "/manifests/"):
			serve(w, manifestType, manifestOf([2]string{layout.ChartLayer, digest}))
		default:
			_, _ = w.Write(chartVersion(t, "6.6.6"))
		}
	})
	host := strings.TrimPrefix(own.URL, "http://")
	spies := map[string]reference.Reference{
		"an address":   atAddress(own.URL+"/demo.tgz", digest),
		"a repository": inRepository(own.URL, "1.0.0"),
		"a registry":   inRegistry("oci://"+host+"/demo", "1.0.0"),
		"a ConfigMap":  inConfigMap("team-b", "charts", ""),
	}
	spies["a repository"].Chart.Helm.PlainHTTP = ptr.To(true)
	spies["a registry"].Chart.OCI.PlainHTTP = ptr.To(true)

	cache := t.TempDir()
	stub := &stub{archive: chartVersion(t, "6.6.6")}
	options := Options{CredentialsDir: dir, Client: stub, Store: storeAt(cache)}
	running, _ := remoteSources(t, options)
	expectFetched(t, running, atAddress(theirs.URL+"/demo.tgz", digest))
	options.Store = storeAt(cache)
	restarted, _ := remoteSources(t, options)
	for when, sources := range map[string]*Sources{"in memory": running, "on disk": restarted} {
		for where, ref := range spies {
			t.Run(where+", "+when, func(t *testing.T) {
				ref.Namespace = "team-b"
				got, err := sources.Fetch(t.Context(), ref, digest)
				if err == nil {
					t.Fatalf("the spy got %d files", len(got.Files))
				}
				if reason := asError(t, err).Reason; reason != failure.DigestMismatch && reason != failure.ArtifactChanged {
					t.Errorf("got %s: %v", reason, err)
				}
			})
		}
	}
	if probed.Load() == 0 {
		t.Error("the spy's server had no chance to lie")
	}
}

// Each team has its own credentials for one repository: the archive is sent once,
// and each of the others has to be let in.
func TestTeamsShareAnArchiveByTheirOwnCredentials(t *testing.T) {
	c := startCluster(t)
	archive := chartVersion(t, "1.0.0")
	server := registry.Start(t, registry.Options{Users: map[string]string{sentinelUser: sentinelPassword}})
	manifest := server.Push(t, archive, "demo", "1.0.0")
	digest := artifact.Content{Archive: archive}.Digest()
	refs := map[string]reference.Reference{}
	for team, password := range map[string]string{"team-a": sentinelPassword, "team-b": sentinelPassword, "default": "sentinel-wrong"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "shared-registry"}, Data: map[string][]byte{
			"ca.crt": server.CA, "username": []byte(sentinelUser), "password": []byte(password)}}
		if err := c.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		for c.metadataVersion(t, secret) != secret.ResourceVersion {
			continue // an event would start the reconcile
		}
		ref := inRegistry(server.URL("demo"), "")
		ref.Namespace = team
		ref.Chart.OCI.SecretRef = &addonsv1.CredentialsReference{Name: "shared-registry"}
		ref.Chart.OCI.Digest = manifest
		refs[team] = ref
	}
	dir := t.TempDir()
	sources, _ := remoteSources(t, Options{Client: c.counted, Metadata: c.metadata, Store: storeAt(dir)})
	server.Requests(t)
	downloads := func(of *Sources, team string) (gets, heads int, err error) {
		_, err = of.Fetch(t.Context(), refs[team], digest)
		for _, request := range server.Requests(t) {
			if strings.HasSuffix(request, "/blobs/"+digest+" 200") {
				if strings.HasPrefix(request, "HEAD") {
					heads++
				} else {
					gets++
				}
			}
		}
		return gets, heads, err
	}
	if gets, heads, err := downloads(sources, "team-a"); err != nil || gets != 1 || heads != 0 {
		t.Errorf("the first team: %d downloads, %d questions, %v", gets, heads, err)
	}
	if gets, heads, err := downloads(sources, "team-b"); err != nil || gets != 0 || heads != 1 {
		t.Errorf("the second team: %d downloads, %d questions, %v", gets, heads, err)
	}
	_, _, err := downloads(sources, "default")
	if known := asError(t, err); known.Reason != failure.SourceUnauthorized {
		t.Errorf("a team that isn't let in: %v", err)
	}
	restarted, _ := remoteSources(t, Options{Client: c.counted, Metadata: c.metadata, Store: storeAt(dir)})
	for _, team := range []string{"team-a", "team-b"} {
		if gets, heads, err := downloads(restarted, team); err != nil || gets != 0 || heads != 0 {
			t.Errorf("%s after a restart: %d downloads, %d questions, %v", team, gets, heads, err)
		}
	}
	if _, _, err := downloads(restarted, "default"); asError(t, err).Reason != failure.SourceUnauthorized {
		t.Errorf("a team that isn't let in, after a restart: %v", err)
	}
}

// What is in objects of the management cluster, or on its disk, isn't written to another one.
func TestOnlyWhatIsRemoteIsStored(t *testing.T) {
	cache, root := t.TempDir(), t.TempDir()
	stub := &stub{archive: chartVersion(t, "1.0.0")}
	write(t, filepath.Join(root, "demo.tgz"), string(chartVersion(t, "2.0.0")))
	sources, _ := remoteSources(t, Options{Client: stub, ArtifactRoot: root, Store: storeAt(cache)})
	expectFetched(t, sources, inConfigMap("team-a", "charts", ""))
	expectFetched(t, sources, atPath("demo.tgz"))
	files, err := os.ReadDir(filepath.Join(cache, "v1"))
	if err != nil || len(files) != 0 {
		t.Errorf("%v: there is %v", err, files)
	}
}
