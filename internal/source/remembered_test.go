// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/versions"
	"github.com/cluster-chandler/chandler/test/github"
	"github.com/cluster-chandler/chandler/test/gitserver"
	"github.com/cluster-chandler/chandler/test/signing"
	"github.com/cluster-chandler/chandler/test/targz"
)

// What an entry of a cache counts, in bytes.
const (
	place      = 64          // of any entry
	aLine      = 448 + place // a digest, or a verdict
	aSearch    = 2 * 448     // in the lists of an artifact
	aList      = 64 + place  // of versions, without the texts
	aTrustedBy = 256 + place // a key, without its data
)

// expectKept does something, after which caches have to hold so many bytes more.
func expectKept(t *testing.T, memory *budget.Budget, least int64, what string, do func()) {
	t.Helper()
	before := memory.Usage().Cached
	do()
	if is := memory.Usage(); is.Cached-before < least || is.Claimed != 0 {
		t.Errorf("%s: caches hold %d bytes more, of at least %d; %d are claimed", what, is.Cached-before, least, is.Claimed)
	}
}

// TestWhatIsRememberedCounts asks each kind of source. Whatever is kept of the answers is in the account. The connection with each host is
// there before, as that counts, too.
func TestWhatIsRememberedCounts(t *testing.T) {
	resolve := func(sources *source.Sources, ref reference.Reference) func() {
		return func() { expectResolved(t, sources, ref) }
	}
	search := func(sources *source.Sources, ref reference.Reference, line versions.Line) func() {
		return func() { newestOf(t, sources, ref, line, time.Time{}) }
	}

	t.Run("registry", func(t *testing.T) {
		w, memory := startSigned(t), budget.New(budget.Limits{})
		sources, _ := remoteSources(t, source.Options{Client: w.cluster, Metadata: w.metadata(), Memory: memory})
		w.push(t, "charts/other")
		digest := w.push(t, "charts/demo")
		signing.Attach(t, w.repository(t, "charts/demo"), digest, w.key.Sign(t, digest))
		resolve(sources, w.ref("charts/other", nil))()
		ref := w.ref("charts/demo", byKeys("cosign.pub"))
		expectKept(t, memory, aLine, "digest", resolve(sources, ref))
		artifact := expectFetched(t, sources, w.ref("charts/other", nil)) // of about the same size
		expectKept(t, memory, aLine+aTrustedBy+int64(len(w.key.Public))+artifact.Bytes()*9/10, "key, verdict and content", func() { expectFetched(t, sources, ref) })
		expectKept(t, memory, aLine, "refusal", func() { refuse(t, sources, ref, expectResolved(t, sources, ref)) })
	})
	t.Run("repository", func(t *testing.T) {
		memory := budget.New(budget.Limits{})
		sources, _ := remoteSources(t, source.Options{Memory: memory})
		archive, index := chartVersion(t, "1.0.0"), []byte(oneVersion("demo.tgz"))
		url := serving(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, ".tgz") {
				_, _ = w.Write(archive)
				return
			}
			_, _ = w.Write(index)
		}).URL
		search(sources, plainly(inRepository(url+"/other", "")), rangeOf(t, ">=1.0.0"))()
		expectKept(t, memory, aLine+place+1, "digest and index", resolve(sources, plainly(inRepository(url+"/charts", "1.0.0"))))
		ref := plainly(inRepository(url+"/charts", ""))
		expectKept(t, memory, aList+aSearch+place, "list and search", search(sources, ref, rangeOf(t, ">=1.0.0")))
		expectKept(t, memory, aSearch, "another search", search(sources, ref, rangeOf(t, ">=0.9.0")))
	})
	t.Run("GitHub", func(t *testing.T) {
		w, memory := startGitHub(t, github.Options{}), budget.New(budget.Limits{})
		sources := newSources(t, source.Options{AllowLoopback: true, Clock: w.clock, CredentialsDir: w.dir, Memory: memory})
		archive := targz.Of(t, chartEntry("demo"))
		w.publish("1.0.0", file("demo-1.0.0.tgz", archive))
		other := w.chart("1.0.0")
		other.Chart.GitHub = &addonsv1.GitHubSource{URL: w.URL("demo/other")}
		_, err := sources.Resolve(t.Context(), other)
		expectRefused(t, err, failure.ArtifactNotFound)
		expectKept(t, memory, aLine+512+place, "digest and files", resolve(sources, w.chart("1.0.0")))
		expectKept(t, memory, aList+aSearch+place+aList, "list, search and page", search(sources, w.chart(""), rangeOf(t, ">=1.0.0")))
	})
	t.Run("Git", func(t *testing.T) {
		server, memory := gitserver.Start(t, true), budget.New(budget.Limits{})
		server.Password = sentinelPassword
		repository := server.Repository(t, "team/charts.git")
		first := repository.Commit(chartFiles("charts/demo", "1.0.0"))
		sources, _ := remoteSources(t, source.Options{CredentialsDir: gitAccess(t, server), Memory: memory})
		search(sources, inGit(repository.URL, "", "charts/demo"), ofMain)()
		ref := inGit(repository.URL, first, "charts/demo")
		uncounted, _ := remoteSources(t, source.Options{CredentialsDir: gitAccess(t, server)})
		artifact := expectFetched(t, uncounted, ref)
		expectKept(t, memory, aLine+artifact.Bytes()+256, "digest, content and commit", func() { expectFetched(t, sources, ref) })
	})
}
