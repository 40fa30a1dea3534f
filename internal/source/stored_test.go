// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/github"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
)

func TestHundredClustersAndARestartAskOnce(t *testing.T) {
	server := registry.Start(t, registry.Options{PlainHTTP: true})
	archive := chartVersion(t, "1.0.0")
	server.Push(t, archive, "demo", "1.0.0")
	server.Requests(t)
	dir := t.TempDir()
	digest := digestOf(archive)
	fetchAll := func() []string {
		sources, _ := remoteSources(t, source.Options{Store: storeAt(dir)})
		var done sync.WaitGroup
		for i := range 100 {
			done.Go(func() {
				ref := plainly(inRegistry(server.URL("demo"), "1.0.0"))
				ref.Namespace = fmt.Sprintf("team-%d", i%5)
				if _, err := sources.Fetch(t.Context(), ref, digest); err != nil { // as in the record of the cluster
					t.Error(err)
				}
			})
		}
		done.Wait()
		return server.Requests(t)
	}
	once := []string{"GET /v2/demo/blobs/" + digest + " 200"}
	for _, when := range []struct {
		name   string
		change func() error
		want   []string
	}{
		{"at first", func() error { return nil }, once},
		{"after a restart", func() error { return nil }, nil},
		{"when it is damaged", func() error { return os.WriteFile(stored(t, dir, string(archive)), []byte("damaged"), 0o600) }, once},
		{"when the cache is emptied", func() error { return os.RemoveAll(dir) }, once},
	} {
		must.Succeed(t, when.change())
		must.Equal(t, when.want, fetchAll(), when.name)
	}
	server.Stop()
	sources, _ := remoteSources(t, source.Options{Store: storeAt(dir)})
	if _, err := sources.Fetch(t.Context(), plainly(inRegistry(server.URL("demo"), "1.0.0")), digest); err != nil {
		t.Errorf("what was fetched is gone with the registry: %v", err)
	}
}

// A team that names another team's digest gets nothing by that, be it in memory or on disk.
// That holds at a server of its own, and at the other team's with other credentials or none.
func TestDigestGivesNoRight(t *testing.T) {
	private := chartVersion(t, "1.0.0")
	digest := digestOf(private)
	theirs := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != sentinelPassword {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write(private)
	})
	// The spy's own server says all that a spy would say, but doesn't have the archive.
	own := serving(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodHead:
			w.Header().Set("Docker-Content-Digest", digest)
			w.Header().Set("Content-Length", fmt.Sprint(len(private)))
		case strings.HasSuffix(r.URL.Path, "index.yaml"):
			fmt.Fprint(w, oneVersion("demo.tgz")+"    digest: "+strings.TrimPrefix(digest, "sha256:")+"\n")
		case strings.Contains(r.URL.Path, "/manifests/"):
			serve(w, manifestType, manifestOf([2]string{layout.ChartLayer, digest}))
		default:
			_, _ = w.Write(chartVersion(t, "6.6.6"))
		}
	})
	good := secret("theirs", "username", sentinelUser, "password", sentinelPassword)
	bad := secret("spy", "username", sentinelUser, "password", "sentinel-wrong")
	bad.Namespace = "team-b"
	c := newCluster(t, good, bad, charts("team-b", chartVersion(t, "6.6.6")))
	cache := t.TempDir()
	options := source.Options{Client: c, Metadata: c.metadata(), Store: storeAt(cache)}
	running, _ := remoteSources(t, options)
	expectFetched(t, running, with("theirs", atAddress(theirs.URL+"/demo.tgz", digest)))
	restarted, _ := remoteSources(t, options)
	for when, sources := range map[string]*source.Sources{"in memory": running, "on disk": restarted} {
		for where, spy := range map[string]struct {
			ref     reference.Reference
			reasons []string
		}{
			"an address":               {atAddress(own.URL+"/demo.tgz", digest), []string{failure.DigestMismatch}},
			"a repository":             {plainly(inRepository(own.URL, "1.0.0")), []string{failure.DigestMismatch}},
			"a registry":               {plainly(inRegistry("oci://"+hostOf(own)+"/demo", "1.0.0")), []string{failure.DigestMismatch}},
			"a ConfigMap":              {inConfigMap("team-b", "charts", ""), []string{failure.ArtifactChanged}},
			"theirs, as somebody else": {with("spy", atAddress(theirs.URL+"/demo.tgz", digest)), []string{failure.SourceUnauthorized}},
			"theirs, as nobody":        {atAddress(theirs.URL+"/demo.tgz", digest), []string{failure.SourceUnauthorized}},
		} {
			t.Run(where+", "+when, func(t *testing.T) {
				spy.ref.Namespace = "team-b"
				_, err := sources.Fetch(t.Context(), spy.ref, digest)
				if err == nil {
					t.Fatal("the spy got it")
				}
				if reason := asError(t, err).Reason; !slices.Contains(spy.reasons, reason) {
					t.Errorf("got %s: %v, want one of %q", reason, err, spy.reasons)
				}
			})
		}
	}
}

// Each team has its own Secret for one registry: each downloads what is there once, and the
// cache serves each after a restart.
func TestTeamsDownloadByTheirOwnCredentials(t *testing.T) {
	archive := chartVersion(t, "1.0.0")
	digest := digestOf(archive)
	server := registry.Start(t, registry.Options{Users: map[string]string{sentinelUser: sentinelPassword}})
	server.Push(t, archive, "demo", "1.0.0")
	c := newCluster(t)
	for _, team := range []string{"team-a", "team-b"} {
		object := secret("shared", "ca.crt", string(server.CA), "username", sentinelUser, "password", sentinelPassword)
		object.Namespace = team
		c.set(object)
	}
	options := source.Options{Client: c, Metadata: c.metadata(), Store: storeAt(t.TempDir())}
	for _, downloads := range []int{1, 0} { // at first, and after a restart
		sources, _ := remoteSources(t, options)
		for _, team := range []string{"team-a", "team-b"} {
			server.Requests(t)
			for range 2 {
				ref := with("shared", inRegistry(server.URL("demo"), "1.0.0"))
				ref.Namespace = team
				if _, err := sources.Fetch(t.Context(), ref, digest); err != nil {
					t.Fatal(err)
				}
			}
			got := slices.DeleteFunc(server.Requests(t), func(r string) bool { return !strings.HasSuffix(r, "/blobs/"+digest+" 200") })
			if len(got) != downloads {
				t.Errorf("%s: downloads %q, want %d", team, got, downloads)
			}
		}
	}
}

// A server may promise any digests: who lists the files of others doesn't get them.
func TestPromisedDigestsGiveNoRight(t *testing.T) {
	w := startGitHub(t, github.Options{})
	data := []byte("password: hunter2")
	w.publish("1", file("values.yaml", data))
	w.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/repos/evil/list/releases/tags/1") {
			return false
		}
		_, err := fmt.Fprintf(w, `{"tag_name": "1", "assets": [{"id": 4711, "name": "values.yaml", "size": %d, "state": "uploaded", "digest": %q}]}`, len(data), digestOf(data))
		return err == nil
	})
	dir := t.TempDir()
	sources := w.sources(t, dir)
	private := expectFetched(t, sources, w.bundle("1"))
	evil := reference.BundleOf("team-b", &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
		GitHub: &addonsv1.GitHubSource{URL: w.URL("evil/list")}, Version: "1"}})
	for name, sources := range map[string]*source.Sources{"in memory": sources, "on disk": w.sources(t, dir)} {
		t.Run(name, func(t *testing.T) {
			if digest := expectResolved(t, sources, evil); digest != private.Digest {
				t.Fatalf("it is %s, not the list of others' files", digest)
			}
			expectRefused(t, get(t, sources, evil), failure.ArtifactNotFound)
		})
	}
}

// What is in objects of the management cluster, or on its disk, isn't written to another one.
func TestOnlyWhatIsRemoteIsStored(t *testing.T) {
	cache, root := t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, "demo.tgz"), string(chartVersion(t, "2.0.0")))
	c := newCluster(t, charts("team-a", chartVersion(t, "1.0.0")))
	sources, _ := remoteSources(t, source.Options{Client: c, ArtifactRoot: root, Store: storeAt(cache)})
	expectFetched(t, sources, inConfigMap("team-a", "charts", ""))
	expectFetched(t, sources, atPath("demo.tgz"))
	expectNothingStored(t, cache)
}

func expectNothingStored(t testing.TB, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	must.Succeed(t, err)
	must.Len(t, 0, files)
}
