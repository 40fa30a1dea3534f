// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/dependency"
	"github.com/cluster-chandler/chandler/internal/source/flight"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/chartfiles"
	"github.com/cluster-chandler/chandler/test/realdata"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/targz"
)

// world is two Helm repositories and a registry: an umbrella chart in the first has
// dependencies in all three.
type dependencyWorld struct {
	own, other *shelf
	registry   *registry.Registry
	sources    *Sources
	clock      *clocktesting.FakeClock
	options    Options
}

func newDependencyWorld(t *testing.T) *dependencyWorld {
	t.Helper()
	authority := registry.NewAuthority(t)
	w := &dependencyWorld{own: startShelf(t, authority), other: startShelf(t, authority), registry: registry.Start(t, registry.Options{})}
	w.options = Options{
		CredentialsDir: instanceTrusting(t, append(slices.Clone(authority.PEM), w.registry.CA...)),
		ArtifactRoot:   t.TempDir(),
		Store:          storeAt(t.TempDir()),
	}
	w.restart(t)
	return w
}

// restart forgets all but what is on disk.
func (w *dependencyWorld) restart(t testing.TB) {
	t.Helper()
	w.sources, w.clock = remoteSources(t, w.options)
}

func (w *dependencyWorld) umbrella() reference.Reference {
	ref := inRepository(w.own.URL, "1.0.0")
	ref.Chart.Helm.Chart = "umbrella"
	return ref
}

// publishUmbrella publishes one of each kind, and a chart that needs them all.
func (w *dependencyWorld) publishUmbrella(t testing.TB) {
	t.Helper()
	w.other.publish(t, "redis", "17.0.1", chartfiles.Simple(t, "redis", "17.0.1", "first"))
	w.registry.Push(t, chartfiles.Simple(t, "common", "2.0.0", "first"), "charts/common", "2.0.0")
	declared := chartfiles.Deps(chartfiles.Dep("redis", "~17.0", w.other.URL), chartfiles.Dep("common", "2.x", w.registry.URL("charts")))
	w.own.publish(t, "umbrella", "1.0.0", chartfiles.Packed(t, "umbrella", chartfiles.Of(t, "umbrella", "1.0.0", declared, "Chart.lock", chartfiles.Lock(t, declared, "17.0.1", "2.0.0"))))
	w.registry.Requests(t)
}

func (w *dependencyWorld) expectNoRequests(t testing.TB) {
	t.Helper()
	own, _ := w.own.asked()
	other, _ := w.other.asked()
	if all := append(append(own, other...), w.registry.Requests(t)...); len(all) > 0 {
		t.Errorf("requests %q", all)
	}
}

func TestDependenciesAreFetched(t *testing.T) {
	w := newDependencyWorld(t)
	w.publishUmbrella(t)
	fetched := expectFetched(t, w.sources, w.umbrella())
	expectWhole := func(whole *Artifact, note string) {
		t.Helper()
		for _, name := range []string{"charts/redis-17.0.1/note", "charts/common-2.0.0/note"} {
			if got := contentOf(t, whole, name); got != note {
				t.Errorf("%s is %q, want %q", name, got, note)
			}
		}
	}
	expectWhole(fetched, "first")
	if digest := expectResolved(t, w.sources, w.umbrella()); fetched.Digest != digest {
		t.Errorf("digest %s, want the chart's own, %s", fetched.Digest, digest)
	}
	if !slices.IsSortedFunc(fetched.Files, func(a, b artifact.File) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the files aren't sorted")
	}
	w.own.asked()
	w.other.asked()
	w.registry.Requests(t)

	t.Run("again, nobody is asked, and nothing is unpacked", func(t *testing.T) {
		if again := expectFetched(t, w.sources, w.umbrella()); again != fetched {
			t.Error("it was put together twice")
		}
		w.expectNoRequests(t)
	})
	t.Run("a dependency that moves stays while it is cached", func(t *testing.T) {
		w.other.publish(t, "redis", "17.0.1", chartfiles.Simple(t, "redis", "17.0.1", "moved"))
		w.registry.Push(t, chartfiles.Simple(t, "common", "2.0.0", "moved"), "charts/common", "2.0.0")
		w.registry.Requests(t)
		expectWhole(expectFetched(t, w.sources, w.umbrella()), "first")
		w.expectNoRequests(t)
	})
	t.Run("after a restart, the disk will do", func(t *testing.T) {
		w.own.set(func() { w.own.down = true })
		w.other.set(func() { w.other.down = true })
		w.restart(t)
		got, err := w.sources.Fetch(t.Context(), w.umbrella(), fetched.Digest) // as the release record tells it
		if err != nil {
			t.Fatal(err)
		}
		expectWhole(got, "first")
		w.expectNoRequests(t)
	})
	t.Run("with an empty cache it is what its version is now", func(t *testing.T) {
		w.own.set(func() { w.own.down = false })
		w.other.set(func() { w.other.down = false })
		w.options.Store = storeAt(t.TempDir())
		w.restart(t)
		expectWhole(expectFetched(t, w.sources, w.umbrella()), "moved")
	})
}

// What the pin refers to is gone from the disk, and from the source.
func TestDependencyThatIsGone(t *testing.T) {
	w := newDependencyWorld(t)
	w.publishUmbrella(t)
	dir := t.TempDir()
	w.options.Store = storeAt(dir)
	w.restart(t)
	digest := expectFetched(t, w.sources, w.umbrella()).Digest
	first := artifact.Content{Archive: chartfiles.Simple(t, "redis", "17.0.1", "first")}.Digest()
	for _, name := range []string{"", ".grants"} {
		if err := os.Remove(filepath.Join(dir, "v1", strings.TrimPrefix(first, "sha256:")+name)); err != nil {
			t.Fatal(err)
		}
	}
	w.other.publish(t, "redis", "17.0.1", chartfiles.Simple(t, "redis", "17.0.1", "moved"))
	w.restart(t)
	got, err := w.sources.Fetch(t.Context(), w.umbrella(), digest)
	if err != nil {
		t.Fatal(err)
	}
	if note := contentOf(t, got, "charts/redis-17.0.1/note"); note != "moved" {
		t.Errorf("it is the %s one", note)
	}
	w.other.set(func() { w.other.down = true })
	w.restart(t)
	if got, err = w.sources.Fetch(t.Context(), w.umbrella(), digest); err != nil {
		t.Fatal(err)
	}
	if note := contentOf(t, got, "charts/redis-17.0.1/note"); note != "moved" {
		t.Errorf("it is the %s one, after a restart", note)
	}
}

func TestHundredClustersFetchDependenciesOnce(t *testing.T) {
	w := newDependencyWorld(t)
	w.publishUmbrella(t)
	digest := expectResolved(t, w.sources, w.umbrella())
	w.own.asked()
	artifacts := make(chan *Artifact, 100)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			artifact, err := w.sources.Fetch(t.Context(), w.umbrella(), digest)
			if err != nil {
				t.Error(err)
			}
			artifacts <- artifact
		})
	}
	all.Wait()
	first := <-artifacts
	for range 99 {
		if another := <-artifacts; another != first {
			t.Fatal("it was put together more than once")
		}
	}
	own, _ := w.own.asked()
	other, _ := w.other.asked()
	if len(own) > 0 || !slices.Equal(other, []string{"GET /index.yaml", "GET /redis-17.0.1.tgz"}) {
		t.Errorf("requests %q and %q", own, other)
	}
	if got := w.registry.Requests(t); len(got) != 2 {
		t.Errorf("requests %q", got)
	}
}

func TestDependencySourceThatIsDown(t *testing.T) {
	w := newDependencyWorld(t)
	w.publishUmbrella(t)
	digest := expectResolved(t, w.sources, w.umbrella())
	w.other.set(func() { w.other.down = true })
	_, err := w.sources.Fetch(t.Context(), w.umbrella(), digest)
	failed := asError(t, err)
	if failed.Reason != failure.SourceUnavailable || !failed.Wait || failed.RetryAfter <= 0 {
		t.Errorf("got %+v", failed)
	}
	want := "chart.helm: " + w.own.URL + `/umbrella 1.0.0: dependencies[0] of Chart.yaml of chart "umbrella 1.0.0", "redis 17.0.1" at "` + w.other.URL + `": ` +
		"the connection to " + hostOf(w.other.URL) + " broke off; it is asked again"
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	w.other.asked()
	for range 10 {
		if _, again := w.sources.Fetch(t.Context(), w.umbrella(), digest); again.Error() != err.Error() {
			t.Errorf("got %v, and %v before", again, err)
		}
	}
	if requests, _ := w.other.asked(); len(requests) > 0 {
		t.Errorf("it was asked too early: %q", requests)
	}
	w.other.set(func() { w.other.down = false })
	w.clock.Step(failure.MaxUnavailable * 2)
	if _, err := w.sources.Fetch(t.Context(), w.umbrella(), digest); err != nil {
		t.Error(err)
	}
}

func TestDependenciesOfTheSameName(t *testing.T) {
	w := newDependencyWorld(t)
	w.other.publish(t, "redis", "17.0.1", chartfiles.Simple(t, "redis", "17.0.1", "old"))
	w.other.publish(t, "redis", "18.0.0", chartfiles.Simple(t, "redis", "18.0.0", "new"))
	first, second, off := chartfiles.Dep("redis", "17.0.1", w.other.URL+"/"), chartfiles.Dep("redis", "18.0.0", w.other.URL), chartfiles.Dep("redis", "18.0.0", w.other.URL)
	first.Alias, second.Alias, off.Alias, off.Condition = "cache", "queue", "store", "store.enabled"
	w.own.publish(t, "umbrella", "1.0.0", chartfiles.Packed(t, "umbrella", chartfiles.Of(t, "umbrella", "1.0.0", chartfiles.Deps(first, second, off), "values.yaml", "store: {enabled: false}\n")))
	artifact := expectFetched(t, w.sources, w.umbrella())
	for name, want := range map[string]string{"charts/redis-17.0.1/note": "old", "charts/redis-18.0.0/note": "new"} {
		if got := contentOf(t, artifact, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// A dependency that misses dependencies gets them, too; a circle is told.
func TestDependenciesOfDependencies(t *testing.T) {
	w := newDependencyWorld(t)
	chain := func(from, to int, last *string) {
		for i := from; i <= to; i++ {
			name, next := fmt.Sprintf("c%d", i), fmt.Sprintf("c%d", i+1)
			declared := chartfiles.Deps(chartfiles.Dep(next, "1.0.0", w.other.URL))
			if i == to && last == nil {
				declared = nil
			} else if i == to {
				declared = chartfiles.Deps(chartfiles.Dep(*last, "1.0.0", w.own.URL))
			}
			w.other.publish(t, name, "1.0.0", chartfiles.Packed(t, name, chartfiles.Of(t, name, "1.0.0", declared, "note", name)))
		}
	}
	declared := chartfiles.Deps(chartfiles.Dep("c1", "1.0.0", w.other.URL))
	w.own.publish(t, "umbrella", "1.0.0", chartfiles.Packed(t, "umbrella", chartfiles.Of(t, "umbrella", "1.0.0", declared)))

	chain(1, 3, nil)
	artifact := expectFetched(t, w.sources, w.umbrella())
	if got := contentOf(t, artifact, "charts/c1-1.0.0/charts/c2-1.0.0/charts/c3-1.0.0/note"); got != "c3" {
		t.Errorf("it is %q", got)
	}
	for name, test := range map[string]struct {
		length int
		last   *string
		says   string
	}{
		"a circle":     {2, ptr.To("umbrella"), "depends on a chart that depends on it"},
		"a long chain": {6, nil, "more than 4 deep"},
	} {
		t.Run(name, func(t *testing.T) {
			chain(1, test.length, test.last)
			w.options.Store = nil
			w.restart(t)
			_, err := w.sources.Fetch(t.Context(), w.umbrella(), expectResolved(t, w.sources, w.umbrella()))
			if failed := asError(t, err); failed.Reason != failure.ArtifactRefused || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %s: %v", failed.Reason, err)
			}
		})
	}
}

// What each server is shown, when the chart has a Secret.
func TestDependencyCredentials(t *testing.T) {
	c := startCluster(t)
	authority := registry.NewAuthority(t)
	own, other := startShelf(t, authority), startShelf(t, authority)
	const mine, theirs, instance = "mine:sentinel-mine", "theirs:sentinel-theirs", "instance:sentinel-instance"
	for _, at := range []*shelf{own, other} {
		at.publish(t, "near", "1.0.0", chartfiles.Simple(t, "near", "1.0.0", ""))
		at.publish(t, "far", "1.0.0", chartfiles.Simple(t, "far", "1.0.0", ""))
	}
	declared := chartfiles.Deps(chartfiles.Dep("near", "1.0.0", own.URL), chartfiles.Dep("far", "1.0.0", other.URL))
	own.publish(t, "umbrella", "1.0.0", chartfiles.Packed(t, "umbrella", chartfiles.Of(t, "umbrella", "1.0.0", declared)))
	own.wants = mine

	key := strings.ReplaceAll(hostOf(other.URL), ":", "_")
	for name, test := range map[string]struct {
		secret, own map[string]string
		wants       string // of the other server
		shown       []string
		fails       string
	}{
		"nobody has any for the other": {secret: map[string]string{"username": "mine", "password": "sentinel-mine", "ca.crt": string(authority.PEM)}},
		"the other wants some": {
			secret: map[string]string{"username": "mine", "password": "sentinel-mine", "ca.crt": string(authority.PEM)}, wants: theirs,
			fails: "answers 401 Unauthorized; add credentials for its host to Secret team-a/",
		},
		"a token": {
			secret: map[string]string{"token": "sentinel-token", "username": "mine", "password": "sentinel-mine", "ca.crt": string(authority.PEM)}, wants: theirs,
			fails: "401",
		},
		"the Secret has some by host": {
			secret: map[string]string{"username": "mine", "password": "sentinel-mine", "ca.crt": string(authority.PEM), "config.json": dockerConfig(t, map[string]string{hostOf(other.URL): theirs})},
			wants:  theirs, shown: []string{basic(theirs)},
		},
		"the Secret has some by key": {
			secret: map[string]string{"username": "mine", "password": "sentinel-mine", "ca.crt": string(authority.PEM), key + ".username": "theirs", key + ".password": "sentinel-theirs"},
			wants:  theirs, shown: []string{basic(theirs)},
		},
		"the instance has some": {
			secret: map[string]string{"username": "mine", "password": "sentinel-mine", "ca.crt": string(authority.PEM)},
			own:    map[string]string{"config.json": dockerConfig(t, map[string]string{hostOf(other.URL): instance, hostOf(own.URL): "never:sentinel-never"}), "ca.crt": string(authority.PEM)},
			wants:  instance, shown: []string{basic(instance)},
		},
		"the instance's are not shown to whom the Secret trusts": {
			secret: map[string]string{"username": "mine", "password": "sentinel-mine", "ca.crt": string(authority.PEM)},
			own:    map[string]string{"config.json": dockerConfig(t, map[string]string{hostOf(other.URL): instance})},
			wants:  instance, fails: "certificate",
		},
	} {
		t.Run(name, func(t *testing.T) {
			secret := strings.ReplaceAll(strings.ToLower(name), " ", "-")
			secret = strings.ReplaceAll(secret, "'", "")
			c.create(t, &corev1.Secret{ObjectMeta: named("team-a", secret), StringData: test.secret})
			dir := t.TempDir()
			for name, data := range test.own {
				write(t, filepath.Join(dir, name), data)
			}
			if name == "a token" {
				own.set(func() { own.wants = "" })
				defer own.set(func() { own.wants = mine })
			}
			other.set(func() { other.wants = test.wants })
			sources, _ := remoteSources(t, Options{Client: c.counted, Metadata: c.metadata, CredentialsDir: dir})
			own.asked()
			other.asked()
			ref := inRepository(own.URL, "1.0.0")
			ref.Chart.Helm.Chart, ref.Chart.Helm.SecretRef = "umbrella", &addonsv1.CredentialsReference{Name: secret}
			_, err := sources.Fetch(t.Context(), ref, expectResolved(t, sources, ref))
			switch {
			case test.fails == "" && err != nil:
				t.Error(err)
			case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
				t.Errorf("got %v, want %s", err, test.fails)
			case err != nil:
				expectNoSecrets(t, err.Error())
			}
			_, ownShown := own.asked()
			_, otherShown := other.asked()
			slices.Sort(ownShown)
			if name != "a token" && !slices.Equal(slices.Compact(ownShown), []string{basic(mine)}) {
				t.Errorf("the chart's host was shown %q", ownShown)
			}
			if got := slices.Compact(otherShown); !slices.Equal(got, test.shown) {
				t.Errorf("the other host was shown %q, want %q", got, test.shown)
			}
		})
	}
}

func TestHostileDependencies(t *testing.T) {
	w := newDependencyWorld(t)
	declared := chartfiles.Deps(chartfiles.Dep("redis", "1.0.0", w.other.URL))
	w.own.publish(t, "umbrella", "1.0.0", chartfiles.Packed(t, "umbrella", chartfiles.Of(t, "umbrella", "1.0.0", declared, "large", strings.Repeat("x", 1<<20))))
	half := strings.Repeat("x", 3<<20)
	large := func(name string) map[string]string {
		return chartfiles.Of(t, name, "1.0.0", nil, "a", half, "b", half)
	}
	for name, test := range map[string]struct {
		archive      []byte
		limits       artifact.Limits
		reason, says string
	}{
		"another chart":    {archive: chartfiles.Simple(t, "mysql", "1.0.0", ""), reason: failure.ArtifactInvalid, says: `what is published there is chart "mysql 1.0.0"`},
		"another version":  {archive: chartfiles.Simple(t, "redis", "1.0.1", ""), reason: failure.ArtifactInvalid, says: `chart "redis 1.0.1"`},
		"traversal":        {archive: targz.Of(t, targz.Entry{Name: "redis/Chart.yaml", Data: chartfiles.ChartYAML(t, "redis", "1.0.0")}, targz.Entry{Name: "redis/../../x"}), reason: failure.ArtifactRefused, says: "leaves the chart"},
		"no archive":       {archive: []byte("redis"), reason: failure.ArtifactInvalid, says: "isn't compressed"},
		"too large itself": {archive: chartfiles.Packed(t, "redis", large("redis")), limits: artifact.Limits{TotalBytes: 5 << 20}, reason: failure.ArtifactTooLarge, says: "5242880 bytes"},
		"too large together": {
			archive: chartfiles.Packed(t, "redis", large("redis")), limits: artifact.Limits{TotalBytes: 13 << 19},
			reason: failure.ArtifactTooLarge, says: "with its dependencies",
		},
		"too many files together": {archive: chartfiles.Simple(t, "redis", "1.0.0", ""), limits: artifact.Limits{Entries: 4}, reason: failure.ArtifactTooLarge, says: "more than 4 entries, with its dependencies"},
		"too deep together": {
			archive: chartfiles.Packed(t, "redis", chartfiles.Of(t, "redis", "1.0.0", nil, "a/b/c/d", "")), limits: artifact.Limits{PathDepth: 5},
			reason: failure.ArtifactRefused, says: "more than 5 parts",
		},
		"archives in it": {
			archive: chartfiles.Packed(t, "redis", chartfiles.Of(t, "redis", "1.0.0", nil, "charts/sub-1.0.0.tgz", string(chartfiles.Packed(t, "sub", large("sub"))))),
			limits:  artifact.Limits{TotalBytes: 13 << 19}, reason: failure.ArtifactTooLarge, says: "expanded content",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.other.publish(t, "redis", "1.0.0", test.archive)
			w.options.Limits, w.options.Store = test.limits, nil
			w.restart(t)
			_, err := w.sources.Fetch(t.Context(), w.umbrella(), expectResolved(t, w.sources, w.umbrella()))
			if failed := asError(t, err); failed.Reason != test.reason || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %s: %v", failed.Reason, err)
			}
		})
	}
}

func TestSignedChartWithoutItsDependencies(t *testing.T) {
	ref := inRegistry("oci://registry.example.org/umbrella", "1.0.0")
	ref.Chart.Verify = &addonsv1.Verification{}
	sources, _ := remoteSources(t, Options{})
	found := verdict{artifact: &Artifact{}, wants: []dependency.Want{{Name: "redis", Version: "17.0.1"}}}
	for name, ref := range map[string]reference.Reference{
		"the chart is signed":  ref,
		"the bundle is signed": atPath("umbrella").In(&addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{OCI: ref.Chart.OCI, Verify: ref.Chart.Verify}}),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sources.complete(t.Context(), ref, found)
			failed := asError(t, err)
			if failed.Reason != failure.SignatureMissing || failed.RetryAfter == 0 || !strings.Contains(err.Error(), `("redis 17.0.1"); package the chart with its dependencies`) {
				t.Errorf("got %+v", failed)
			}
			if _, err := sources.complete(t.Context(), ref, verdict{artifact: found.artifact}); err != nil {
				t.Error(err)
			}
		})
	}
}

// An index may say that its charts are in a registry.
func TestDependencyThatIsElsewhere(t *testing.T) {
	w := newDependencyWorld(t)
	w.registry.Push(t, chartfiles.Simple(t, "redis", "17.0.1", "there"), "charts/redis", "17.0.1")
	w.other.publish(t, "redis", "17.0.1", chartfiles.Simple(t, "redis", "17.0.1", "here"))
	w.other.set(func() { w.other.index.Entries["redis"][0].URLs = []string{w.registry.URL("charts/redis:17.0.1")} })
	w.own.publish(t, "umbrella", "1.0.0", chartfiles.Packed(t, "umbrella", chartfiles.Of(t, "umbrella", "1.0.0", chartfiles.Deps(chartfiles.Dep("redis", "17.0.1", w.other.URL)))))
	if got := contentOf(t, expectFetched(t, w.sources, w.umbrella()), "charts/redis-17.0.1/note"); got != "there" {
		t.Errorf("it is from %s", got)
	}
	w.restart(t)
	w.other.set(func() { w.other.down = true })
	expectFetched(t, w.sources, w.umbrella())
}

// Charts in all kinds of sources get their dependencies: the instance's credentials
// will do for those that have none of their own.
func TestDependenciesOfChartsElsewhere(t *testing.T) {
	c := startCluster(t)
	w := newDependencyWorld(t)
	w.publishUmbrella(t)
	w.own.mu.Lock()
	archive := w.own.archives["/umbrella-1.0.0.tgz"]
	w.own.mu.Unlock()
	w.registry.Push(t, archive, "charts/umbrella", "1.0.0")
	c.create(t, &corev1.ConfigMap{ObjectMeta: named("team-a", "umbrella"), BinaryData: map[string][]byte{addonsv1.DefaultArtifactKey: archive}})
	root := w.options.ArtifactRoot
	write(t, filepath.Join(root, "umbrella.tgz"), string(archive))
	files, err := artifact.Content{Archive: archive}.Unpack(artifact.Limits{}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		write(t, filepath.Join(root, "umbrella", file.Name), string(file.Data))
		write(t, filepath.Join(root, "bundle", "stage", "umbrella", file.Name), string(file.Data))
	}
	w.options.Client, w.options.Metadata = c.counted, c.metadata
	w.restart(t)
	bundle := &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "bundle"}}
	opened, err := w.sources.OpenBundle(t.Context(), "team-a", bundle)
	if err != nil {
		t.Fatal(err)
	}
	inBundle := atPath("stage/umbrella").In(bundle)
	if inBundle.Chart.Digest, err = opened.ChartDigest("stage/umbrella"); err != nil {
		t.Fatal(err)
	}
	for name, ref := range map[string]reference.Reference{
		"a registry": inRegistry(w.registry.URL("charts/umbrella"), "1.0.0"), "an address": atAddress(w.own.URL+"/umbrella-1.0.0.tgz", artifact.Content{Archive: archive}.Digest()),
		"a ConfigMap": inConfigMap("team-a", "umbrella", ""), "an archive": atPath("umbrella.tgz"), "a directory": atPath("umbrella"), "a bundle": inBundle,
	} {
		t.Run(name, func(t *testing.T) {
			if got := contentOf(t, expectFetched(t, w.sources, ref), "charts/redis-17.0.1/note"); got != "first" {
				t.Errorf("it is %q", got)
			}
		})
	}
}

// A slow dependency keeps nobody waiting for longer than a slow chart.
func TestSlowDependency(t *testing.T) {
	w := newDependencyWorld(t)
	w.publishUmbrella(t)
	digest := expectResolved(t, w.sources, w.umbrella())
	w.other.mu.Lock() // whoever asks waits
	result := make(chan error)
	go func() {
		_, err := w.sources.Fetch(t.Context(), w.umbrella(), digest)
		result <- err
	}()
	for done := false; !done; {
		select {
		case err := <-result:
			if failed := asError(t, err); failed.Reason != failure.ArtifactPending || !failed.Wait || failed.RetryAfter != time.Second {
				t.Errorf("got %+v", failed)
			}
			done = true
		default:
			if w.clock.HasWaiters() {
				w.clock.Step(flight.Patience)
			}
		}
	}
	w.other.mu.Unlock()
	w.awaitUmbrella(t, digest)
}

// awaitUmbrella waits for what goes on.
func (w *dependencyWorld) awaitUmbrella(t testing.TB, digest string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		_, err := w.sources.Fetch(t.Context(), w.umbrella(), digest)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// One of many slow dependencies holds up a reconcile no longer than another slow chart would.
func TestSlowDependencySharesPatience(t *testing.T) {
	w := newDependencyWorld(t)
	w.publishUmbrella(t)
	digest := expectResolved(t, w.sources, w.umbrella())
	w.other.mu.Lock() // whoever asks waits
	w.sources.remote.flights = flight.New(clock.RealClock{})
	spent := flight.WithPatience(t.Context(), 0)
	begun := time.Now()
	_, err := w.sources.Fetch(spent, w.umbrella(), digest)
	if failed := asError(t, err); failed.Reason != failure.ArtifactPending {
		t.Errorf("got %+v", failed)
	}
	if took := time.Since(begun); took > flight.Patience/2 {
		t.Errorf("it waited for %s; nobody has that much patience left", took)
	}
	w.other.mu.Unlock()
	w.awaitUmbrella(t, digest)
}

// What a Secret as a whole got is no answer for a chart that may show only a part of it.
func TestDependenciesElsewhereHaveAnswersOfTheirOwn(t *testing.T) {
	secret := &addonsv1.CredentialsReference{Name: "keys"}
	root := reference.Reference{Namespace: "team", Chart: addonsv1.ChartSource{Version: "1.0.0", OCI: &addonsv1.OCISource{URL: "oci://own.example/umbrella", SecretRef: secret}}}
	for repository, shared := range map[string]bool{"oci://own.example": true, "oci://other.example": false, "oci://own.example:8443": false} {
		dependency, err := root.Dependency(dependency.Want{Name: "web", Version: "1.2.3", Repository: repository + "/charts"})
		if err != nil {
			t.Fatal(err)
		}
		direct := reference.Reference{Namespace: "team", Chart: addonsv1.ChartSource{Version: "1.2.3", OCI: &addonsv1.OCISource{URL: repository + "/charts/web", SecretRef: secret}}}
		if got := dependency.String() == direct.String(); got != shared {
			t.Errorf("%s: answers are shared with those who name it themselves: %v, want %v", repository, got, shared)
		}
	}
}

// An umbrella of published charts is one that Helm takes for complete.
func TestUmbrellaOfRealCharts(t *testing.T) {
	root := realdata.Path(t, "charts")
	w := newDependencyWorld(t)
	published := func(file string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, version := range map[string]string{"cilium": "1.19.6", "kube-state-metrics": "8.4.0", "ingress-nginx": "4.15.1"} {
		w.other.publish(t, name, version, published(name+"-"+version+".tgz"))
	}
	w.registry.Push(t, published("metrics-server-3.13.1.tgz"), "charts/metrics-server", "3.13.1")
	declared := chartfiles.Deps(chartfiles.Dep("cilium", "~1.19.5", w.other.URL), chartfiles.Dep("kube-state-metrics", "8.x", w.other.URL), chartfiles.Dep("metrics-server", ">=3", w.registry.URL("charts")), chartfiles.Dep("ingress-nginx", "4.15.1", w.other.URL))
	declared[2].Alias, declared[3].Condition = "metrics", "ingress.enabled"
	w.own.publish(t, "umbrella", "1.0.0", chartfiles.Packed(t, "umbrella", chartfiles.Of(t, "umbrella", "1.0.0", declared,
		"Chart.lock", chartfiles.Lock(t, declared, "1.19.6", "8.4.0", "3.13.1", "4.15.1"), "values.yaml", "ingress: {enabled: false}\n")))
	artifact := expectFetched(t, w.sources, w.umbrella())
	var files []*archive.BufferedFile
	for _, file := range artifact.Files {
		files = append(files, &archive.BufferedFile{Name: file.Name, Data: file.Data})
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	if err := chartutil.ProcessDependencies(loaded, loaded.Values); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, dependency := range loaded.Dependencies() {
		got = append(got, dependency.Name())
	}
	if slices.Sort(got); !slices.Equal(got, []string{"cilium", "kube-state-metrics", "metrics"}) {
		t.Errorf("Helm takes %q", got)
	}
}
