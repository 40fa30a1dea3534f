// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
	"github.com/cluster-chandler/chandler/test/wait"
)

// counted counts the requests for content.
type counted struct {
	client.Reader
	requests atomic.Int32
}

func (c *counted) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c.requests.Add(1)
	return c.Reader.Get(ctx, key, object, options...)
}

// realCluster is a management cluster with an API server, and sources that read from it.
type realCluster struct {
	client.Client
	config  *rest.Config
	counted *counted
	sources *source.Sources
}

func startRealCluster(t *testing.T) *realCluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Name: "source"})
	must.Succeed(t, err)
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	direct, err := client.New(plane.Config(), client.Options{})
	must.Succeed(t, err)
	metadata, err := ctrlcache.New(plane.Config(), ctrlcache.Options{})
	must.Succeed(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- metadata.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	c := &realCluster{Client: direct, config: plane.Config(), counted: &counted{Reader: direct}}
	c.sources = newSources(t, source.Options{Client: c.counted, Metadata: metadata})
	for _, namespace := range []string{"team-a", "team-b"} {
		c.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	return c
}

func (c *realCluster) create(t *testing.T, object client.Object) {
	t.Helper()
	must.Succeed(t, c.Create(t.Context(), object))
}

func (c *realCluster) update(t *testing.T, object client.Object) {
	t.Helper()
	must.Succeed(t, c.Update(t.Context(), object))
}

// expectSettled resolves until the metadata cache has caught up with the API
// server, after which an unchanged reference costs no request.
func (c *realCluster) expectSettled(t *testing.T, ref reference.Reference, digest string) {
	t.Helper()
	wait.Until(t, 20*time.Second, "an unchanged reference costs no request", func() error {
		before := c.counted.requests.Load()
		got, err := c.sources.Resolve(t.Context(), ref)
		if asked := c.counted.requests.Load() - before; err != nil || got != digest || asked > 0 {
			return fmt.Errorf("%s resolves to %s with %d requests, want %s: %w", ref, got, asked, digest, err)
		}
		return nil
	})
	before := c.counted.requests.Load()
	for range 100 {
		if got := expectResolved(t, c.sources, ref); got != digest {
			t.Fatalf("%s resolves to %s, want %s", ref, got, digest)
		}
	}
	must.Equal(t, before, c.counted.requests.Load(), ref)
}

func TestChartsOfARealAPIServer(t *testing.T) {
	c := startRealCluster(t)
	first, second := targz.Chart(t), targz.Chart(t, targz.Entry{Name: "demo/values.yaml", Data: "a: 1"})
	firstDigest, secondDigest := digestOf(first), digestOf(second)

	t.Run("a ConfigMap that changes", func(t *testing.T) {
		object := &corev1.ConfigMap{ObjectMeta: named("team-a", "charts"), BinaryData: map[string][]byte{"chart.tgz": first, "other.tgz": second}}
		c.create(t, object)
		ref := inConfigMap("team-a", "charts", "")
		c.expectSettled(t, ref, firstDigest)
		c.expectSettled(t, inConfigMap("team-a", "charts", "other.tgz"), secondDigest)
		if fetched := expectFetched(t, c.sources, ref); fetched.Digest != firstDigest || len(fetched.Files) != 1 {
			t.Errorf("fetched %s with %v", fetched.Digest, namesOf(fetched))
		}
		object.BinaryData["chart.tgz"] = second
		c.update(t, object)
		c.expectSettled(t, ref, secondDigest)

		// The same name, another object.
		must.Succeed(t, c.Delete(t.Context(), object))
		c.create(t, &corev1.ConfigMap{ObjectMeta: named("team-a", "charts"), BinaryData: map[string][]byte{"chart.tgz": first}})
		c.expectSettled(t, ref, firstDigest)
	})

	t.Run("a Secret that changes", func(t *testing.T) {
		object := &corev1.Secret{ObjectMeta: named("team-a", "charts"), Data: map[string][]byte{"chart.tgz": first}}
		c.create(t, object)
		ref := inSecret("team-a", "charts", "")
		c.expectSettled(t, ref, firstDigest)
		expectFetched(t, c.sources, ref)
		object.Data["chart.tgz"] = second
		c.update(t, object)
		c.expectSettled(t, ref, secondDigest)
	})

	t.Run("a change that no cache has seen", func(t *testing.T) {
		object := &corev1.ConfigMap{ObjectMeta: named("team-a", "direct"), BinaryData: map[string][]byte{"chart.tgz": first}}
		c.create(t, object)
		direct := newSources(t, source.Options{Client: c.counted})
		expectFetched(t, direct, inConfigMap("team-a", "direct", ""))
		object.BinaryData["chart.tgz"] = second
		c.update(t, object)
		if got := expectResolved(t, direct, inConfigMap("team-a", "direct", "")); got != secondDigest {
			t.Errorf("without Metadata it resolves to %s, want %s at once", got, secondDigest)
		}
	})

	t.Run("what isn't there yet", func(t *testing.T) {
		for _, ref := range []reference.Reference{
			inConfigMap("team-a", "missing", ""), inSecret("team-a", "missing", "a"),
			inConfigMap("team-b", "charts", ""), inSecret("team-b", "charts", ""), // they exist in team-a
			inConfigMap("team-a", "charts", "x"), inSecret("team-a", "charts", "x"), // the object exists
		} {
			_, err := c.sources.Resolve(t.Context(), ref)
			expectRefused(t, err, failure.ArtifactNotFound)
			if !asError(t, err).Wait {
				t.Errorf("%s: it doesn't say to wait", ref)
			}
			_, err = c.sources.Fetch(t.Context(), ref, "sha256:of something that was there")
			expectRefused(t, err, failure.ArtifactNotFound)
		}
		c.create(t, &corev1.ConfigMap{ObjectMeta: named("team-a", "missing"), BinaryData: map[string][]byte{"chart.tgz": first}})
		c.expectSettled(t, inConfigMap("team-a", "missing", ""), firstDigest)
	})

	t.Run("text in data", func(t *testing.T) {
		c.create(t, &corev1.ConfigMap{ObjectMeta: named("team-a", "text"), Data: map[string]string{"chart.tgz": "H4sIAAAA"}})
		_, err := c.sources.Resolve(t.Context(), inConfigMap("team-a", "text", ""))
		expectRefused(t, err, failure.ArtifactInvalid)
	})

	t.Run("manifests in data", func(t *testing.T) {
		const key, page, one, other = "install.yaml", "page.html", "a: 1\n", "a: 2\n"
		object := &corev1.ConfigMap{ObjectMeta: named("team-a", "install"), Data: map[string]string{key: one, page: "<html>"}}
		c.create(t, object)
		c.create(t, &corev1.Secret{ObjectMeta: named("team-a", "install"), StringData: map[string]string{key: one}})
		chart := inConfigMap("team-a", "install", key)
		ref := as(artifact.KindManifests, chart)
		for range 2 { // in both orders: what the object holds is remembered for both
			expectPlain(t, c.sources, ref, artifact.PlainYAML, one)
			_, err := c.sources.Resolve(t.Context(), chart)
			expectRefused(t, err, failure.ArtifactInvalid)
			_, err = c.sources.Fetch(t.Context(), chart, digestOf(one))
			expectRefused(t, err, failure.ArtifactInvalid)
		}
		expectPlain(t, c.sources, as(artifact.KindManifests, inSecret("team-a", "install", key)), artifact.PlainYAML, one)
		expectRefused(t, get(t, c.sources, as(artifact.KindManifests, inConfigMap("team-a", "install", page))), failure.ArtifactInvalid)
		c.expectSettled(t, ref, digestOf(one))
		object.Data[key] = other
		c.update(t, object)
		c.expectSettled(t, ref, digestOf(other))
		expectPlain(t, c.sources, ref, artifact.PlainYAML, other)
	})

	t.Run("a Secret's content isn't told", func(t *testing.T) {
		c.create(t, &corev1.Secret{ObjectMeta: named("team-a", "database"), StringData: map[string]string{"password": "sentinel", "sentinelkey": "x"}})
		expectRefused(t, get(t, c.sources, inSecret("team-a", "database", "password")), failure.ArtifactInvalid)
		expectRefused(t, get(t, c.sources, inSecret("team-a", "database", "chart.tgz")), failure.ArtifactNotFound)
	})

	t.Run("an API server that is away", func(t *testing.T) {
		config := rest.CopyConfig(c.config)
		config.Host = "https://127.0.0.1:1"
		away, err := client.New(config, client.Options{})
		if err != nil {
			t.Skipf("the client asks the API server for its kinds when it is made: %v", err)
		}
		_, err = newSources(t, source.Options{Client: away}).Resolve(t.Context(), inConfigMap("team-a", "charts", ""))
		if known := asError(t, err); known.Reason != failure.SourceUnavailable || known.Wait {
			t.Errorf("reason %s, wait %v; want %s, and a retry", known.Reason, known.Wait, failure.SourceUnavailable)
		}
	})
}
