// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/versions"
	"github.com/cluster-chandler/chandler/test/gitserver"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// inGit refers to a chart at a path of a repository.
func inGit(url, commit, path string) reference.Reference {
	return reference.ChartOf("team-a", addonsv1.ChartSource{Git: &addonsv1.GitSource{
		URL: url, Commit: commit, Path: path, PlainHTTP: ptr.To(strings.HasPrefix(url, "http:")),
	}})
}

// chartFiles are those of a chart in a directory.
func chartFiles(directory, version string) map[string]string {
	return map[string]string{
		directory + "/Chart.yaml": "apiVersion: v2\nname: demo\nversion: " + version + "\n", directory + "/values.yaml": "a: 1\n",
	}
}

// gitAccess is a directory of the instance's own credentials for a server by HTTPS.
func gitAccess(t testing.TB, server *gitserver.Server) string {
	t.Helper()
	dir, key := t.TempDir(), credentials.KeyOf(server.Listener.Addr().String())
	write(t, filepath.Join(dir, key+".username"), "git")
	write(t, filepath.Join(dir, key+".password"), server.Password)
	write(t, filepath.Join(dir, key+".ca.crt"), string(server.CA()))
	return dir
}

// newestOf is the newest version that the repository has of a line.
func newestOf(t testing.TB, sources *source.Sources, ref reference.Reference, line versions.Line, notBefore time.Time) string {
	t.Helper()
	version, err := sources.Newest(t.Context(), ref, line, notBefore)
	must.Succeed(t, err)
	return version
}

var (
	ofMain = versions.Latest{What: "branch main", Prefix: addonsv1.GitBranches + "main" + addonsv1.GitCommit}
	ofV1   = versions.Latest{What: "tag v1.0.0", Prefix: addonsv1.GitTags + "v1.0.0" + addonsv1.GitCommit, Fixed: true}
)

// TestGitByEachProtocol follows a branch, a tag and a range, and fetches charts, a kustomization, manifests and a bundle.
func TestGitByEachProtocol(t *testing.T) {
	for name, old := range map[string]bool{"version 2": false, "version 0": true} {
		for _, protocol := range []string{"https", "ssh"} {
			t.Run(protocol+" with "+name, func(t *testing.T) {
				server := gitserver.Start(t, true)
				server.Password, server.Old = sentinelPassword, old
				repository := server.Repository(t, "team/charts.git")
				files := chartFiles("charts/demo", "1.0.0")
				files["install.yaml"], files["web/kustomization.yaml"], files["bundles/a.tgz"] = installYAML, "resources: []\n", string(targz.Files(t, map[string]string{"x.yaml": installYAML}))
				first := repository.Commit(files)
				repository.Git("tag", "v1.0.0")
				repository.Git("tag", "-a", "-m", "a tag", "v1.1.0")
				dir, url := gitAccess(t, server), repository.URL
				if protocol == "ssh" {
					over := server.SSH(t, !old)
					key := credentials.KeyOf(over.Address)
					write(t, filepath.Join(dir, key+".identity"), string(over.Identity))
					write(t, filepath.Join(dir, "known_hosts"), string(over.KnownHosts))
					url = "ssh://git@" + over.Address + "/team/charts.git"
				}
				memory := budget.New(budget.Limits{})
				defer func() { must.Equal(t, 0, memory.Usage().Claimed, "claimed in the end") }()
				sources, clock := remoteSources(t, source.Options{CredentialsDir: dir, Memory: memory})
				ref := inGit(url, "", "charts/demo")
				must.Equal(t, "heads/main@sha1:"+first, newestOf(t, sources, ref, ofMain, time.Time{}), "newest")
				must.Equal(t, "tags/v1.0.0@sha1:"+first, newestOf(t, sources, ref, ofV1, time.Time{}), "newest")
				tags, err := versions.ParseRange("1.x")
				must.Succeed(t, err)
				allowed := versions.Within{Line: tags, Before: addonsv1.GitTags, After: addonsv1.GitCommit}
				must.Equal(t, "tags/v1.1.0@sha1:"+first, newestOf(t, sources, ref, allowed, time.Time{}), "newest of the range, whose tag is annotated")

				digest, err := sources.Pin(t.Context(), ref, "heads/main@sha1:"+first, time.Time{})
				must.Succeed(t, err)
				pinned := ref.WithVersion("heads/main@sha1:" + first).WithDigest(digest)
				got := expectFetched(t, sources, pinned)
				if names := namesOf(got); got.Digest != digest || !slices.Equal(names, []string{"Chart.yaml", "values.yaml"}) {
					t.Errorf("got %s with %q", got.Digest, names)
				}
				expectPlain(t, sources, as(artifact.KindManifests, inGit(url, first, "install.yaml")), artifact.PlainYAML, installYAML)
				expectFetched(t, sources, as(artifact.KindKustomization, inGit(url, first, "web")))
				expectPlain(t, sources, as(artifact.KindManifests, inGit(url, first, "bundles/a.tgz/x.yaml")), artifact.PlainYAML, installYAML)
				if names := namesOf(expectFetched(t, sources, as(artifact.KindBundle, inGit(url, first, "")))); len(names) != 5 {
					t.Errorf("the bundle has %q", names)
				}
				must.Equal(t, 1, server.Fetches.Load(), "fetches")

				// A push, and a branch that is forced.
				second := repository.Commit(chartFiles("charts/demo", "1.1.0"))
				clock.Step(time.Minute)
				must.Equal(t, "heads/main@sha1:"+second, newestOf(t, sources, ref, ofMain, clock.Now()), "newest")
				repository.Git("checkout", "-q", "--orphan", "other")
				third := repository.Commit(nil)
				repository.Git("branch", "-f", "main")
				clock.Step(time.Minute)
				version := newestOf(t, sources, ref, ofMain, clock.Now())
				must.Equal(t, "heads/main@sha1:"+third, version, "newest")
				withdrawn, err := sources.Withdrawn(t.Context(), ref, ofMain, "heads/main@sha1:"+first, clock.Now())
				must.Succeed(t, err)
				must.Equal(t, false, withdrawn, "a commit of a branch is withdrawn")
				repository.Git("branch", "-D", "main")
				clock.Step(time.Minute)
				_, err = sources.Newest(t.Context(), ref, ofMain, clock.Now())
				expectRefused(t, err, failure.ArtifactNotFound)
				expectRefused(t, get(t, sources, inGit(url, strings.Repeat("a", 40), "charts/demo")), failure.ArtifactNotFound)
				expectRefused(t, get(t, sources, inGit(url, first, "charts/none")), failure.ArtifactNotFound)
				expectRefused(t, get(t, sources, inGit(url+"x", first, "charts/demo")), failure.ArtifactNotFound)
			})
		}
	}
}

// TestGitOfManyAddons has many charts of a repository, which 20 clusters fetch: a commit is fetched once, and a look is one request.
func TestGitOfManyAddons(t *testing.T) {
	long.InCI(t)
	const clusters = 20
	addons := 200
	if os.Getenv(long.Env) != "no" {
		addons = 2000
	}
	server := gitserver.Start(t, true)
	repository := server.Repository(t, "charts.git")
	files := map[string]string{}
	for i := range addons {
		for name, data := range chartFiles(fmt.Sprintf("charts/%d", i), fmt.Sprintf("1.0.%d", i)) {
			files[name] = data
		}
	}
	repository.Commit(files)
	kept := t.TempDir()
	sources, clock := remoteSources(t, source.Options{CredentialsDir: gitAccess(t, server), Store: storeAt(kept)})
	var pinned []reference.Reference
	for look := range int32(2) {
		pinned = nil
		for i := range addons {
			ref := inGit(repository.URL, "", fmt.Sprintf("charts/%d", i))
			version := newestOf(t, sources, ref, ofMain, clock.Now())
			digest, err := sources.Pin(t.Context(), ref, version, clock.Now())
			must.Succeed(t, err)
			pinned = append(pinned, ref.WithVersion(version).WithDigest(digest))
		}
		var delivering errgroup.Group
		for cluster := range clusters {
			delivering.Go(func() error {
				for i := cluster; i < addons; i += clusters {
					if err := get(t, sources, pinned[i]); err != nil {
						return err
					}
				}
				return nil
			})
		}
		must.Succeed(t, delivering.Wait())
		must.Equal(t, look+1, server.Looks.Load(), "looks")
		must.Equal(t, look+1, server.Fetches.Load(), "fetches")
		clock.Step(10 * time.Minute)
		repository.Commit(map[string]string{"README.md": "changed"})
	}
	inCache, err := filepath.Glob(filepath.Join(kept, "*", "*"))
	must.Succeed(t, err)
	must.Equal(t, addons, len(inCache), "files in the cache: what the second commit didn't change is there once")
	server.Close()
	restarted, _ := remoteSources(t, source.Options{CredentialsDir: gitAccess(t, server), Store: storeAt(kept)})
	for _, ref := range pinned {
		expectFetched(t, restarted, ref)
	}
}

func TestGitThatIsRefused(t *testing.T) {
	server := gitserver.Start(t, true)
	server.Password = sentinelPassword
	repository := server.Repository(t, "charts.git")
	commit := repository.Commit(chartFiles("demo", "1.0.0"))
	over := server.SSH(t, true)
	other := server.SSH(t, true)
	at := func(key string) string { return credentials.KeyOf(server.Listener.Addr().String()) + "." + key }
	ssh := func(key string) string { return credentials.KeyOf(over.Address) + "." + key }
	url := "ssh://git@" + over.Address + "/charts.git"
	othersKey := strings.Replace(string(other.KnownHosts), strings.SplitN(string(other.KnownHosts), " ", 2)[0], strings.SplitN(string(over.KnownHosts), " ", 2)[0], 1)
	hash := knownhosts.HashHostname(knownhosts.Normalize(over.Address)) + " " + strings.SplitN(string(over.KnownHosts), " ", 2)[1]
	for name, tc := range map[string]struct {
		url    string
		files  map[string]string
		reason string
	}{
		"good":                 {repository.URL, map[string]string{at("token"): sentinelPassword, at("ca.crt"): string(server.CA())}, ""},
		"another password":     {repository.URL, map[string]string{at("username"): "git", at("password"): "sentinel", at("ca.crt"): string(server.CA())}, failure.SourceUnauthorized},
		"no password":          {repository.URL, map[string]string{at("ca.crt"): string(server.CA())}, failure.SourceUnauthorized},
		"no CA":                {repository.URL, map[string]string{at("token"): sentinelPassword}, failure.SourceUntrusted},
		"good, by SSH":         {url, map[string]string{ssh("identity"): string(over.Identity), ssh("known_hosts"): string(over.KnownHosts)}, ""},
		"a hashed name":        {url, map[string]string{ssh("identity"): string(over.Identity), ssh("known_hosts"): "# a comment\n" + hash}, ""},
		"no known_hosts":       {url, map[string]string{ssh("identity"): string(over.Identity)}, failure.SourceUntrusted},
		"another host's key":   {url, map[string]string{ssh("identity"): string(over.Identity), ssh("known_hosts"): othersKey}, failure.SourceUntrusted},
		"no private key":       {url, map[string]string{ssh("known_hosts"): string(over.KnownHosts)}, failure.SourceUnauthorized},
		"no key":               {url, map[string]string{ssh("known_hosts"): string(over.KnownHosts), ssh("identity"): "sentinel"}, failure.SourceUnauthorized},
		"another private key":  {url, map[string]string{ssh("known_hosts"): string(over.KnownHosts), ssh("identity"): string(other.Identity)}, failure.SourceUnauthorized},
		"nobody listens":       {"ssh://git@127.0.0.1:1/charts.git", map[string]string{"known_hosts": "[127.0.0.1]:1 " + strings.SplitN(string(over.KnownHosts), " ", 2)[1], "127.0.0.1_1.identity": string(over.Identity)}, failure.SourceUnavailable},
		"a metadata address":   {"ssh://git@169.254.169.254/charts.git", map[string]string{"known_hosts": "169.254.169.254 " + strings.SplitN(string(over.KnownHosts), " ", 2)[1], "169.254.169.254.identity": string(over.Identity)}, failure.ArtifactRefused},
		"metadata, by HTTPS":   {"https://169.254.169.254/charts.git", nil, failure.ArtifactRefused},
		"an archive of no git": {server.URL + "/", map[string]string{at("token"): sentinelPassword, at("ca.crt"): string(server.CA())}, failure.ArtifactNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, data := range tc.files {
				write(t, filepath.Join(dir, file), data)
			}
			sources, _ := remoteSources(t, source.Options{CredentialsDir: dir})
			expectRefused(t, get(t, sources, inGit(tc.url, commit, "demo")), tc.reason)
		})
	}
}
