// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"path/filepath"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/github"
)

// releases of a repository at a server with TLS, and an instance with credentials for it.
type githubWorld struct {
	*github.Server
	clock *clocktesting.FakeClock
	dir   string // of the instance's own credentials
}

const demoRepository = "demo/charts"

func startGitHub(t testing.TB, options github.Options) *githubWorld {
	t.Helper()
	w := &githubWorld{clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second)), dir: t.TempDir()}
	options.Now = w.clock.Now
	w.Server = github.Start(t, options)
	write(t, filepath.Join(w.dir, "ca.crt"), string(w.CA))
	if options.Token != "" {
		w.giveToken(t, options.Token)
	}
	return w
}

func (w *githubWorld) giveToken(t testing.TB, token string) {
	t.Helper()
	write(t, filepath.Join(w.dir, credentials.KeyOf(w.Host)+".token"), token)
	allowPlain(t, w.dir, w.Host)
}

// sources of its own, that know nothing but what is in the directory of a store.
func (w *githubWorld) sources(t testing.TB, dir string) *source.Sources {
	t.Helper()
	options := source.Options{AllowLoopback: true, Clock: w.clock, CredentialsDir: w.dir}
	if dir != "" {
		options.Store = storeAt(dir)
	}
	return newSources(t, options)
}

func (w *githubWorld) chart(version string, change ...func(*addonsv1.GitHubSource)) reference.Reference {
	at := &addonsv1.GitHubSource{URL: w.URL(demoRepository)}
	for _, change := range change {
		change(at)
	}
	return reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{GitHub: at, Version: version}}
}

func (w *githubWorld) bundle(version string) reference.Reference {
	return reference.BundleOf("team-a", &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
		GitHub: &addonsv1.GitHubSource{URL: w.URL(demoRepository)}, Version: version}})
}

func (w *githubWorld) manifests(version string, change ...func(*addonsv1.GitHubSource)) reference.Reference {
	return reference.ManifestsOf("team-a", &addonsv1.ManifestsSource{ArtifactSource: addonsv1.ArtifactSource{
		GitHub: w.chart(version, change...).Chart.GitHub, Version: version}})
}

func (w *githubWorld) publish(tag string, files ...github.File) {
	w.Publish(demoRepository, github.Release{Tag: tag, Name: "what people see", Files: files})
}

func prefixed(prefix string) func(*addonsv1.GitHubSource) {
	return func(at *addonsv1.GitHubSource) { at.TagPrefix = prefix }
}

func called(asset string) func(*addonsv1.GitHubSource) {
	return func(at *addonsv1.GitHubSource) { at.Asset = asset }
}

func being(digest string) func(*addonsv1.GitHubSource) {
	return func(at *addonsv1.GitHubSource) { at.Digest = digest }
}

func file(name string, data []byte) github.File { return github.File{Name: name, Data: data} }
