// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/targz"
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

// cluster is a management cluster, and sources that read from it.
type cluster struct {
	client.Client
	config   *rest.Config
	counted  *counted
	metadata client.Reader
	sources  *Sources
}

// metadataVersion is the object's version as the metadata cache knows it.
func (c *cluster) metadataVersion(t *testing.T, object client.Object) string {
	t.Helper()
	known := &metav1.PartialObjectMetadata{}
	known.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(reference.KindSecret))
	if err := client.IgnoreNotFound(c.metadata.Get(t.Context(), client.ObjectKeyFromObject(object), known)); err != nil {
		t.Fatal(err)
	}
	return known.ResourceVersion
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Name: "source"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	ctrl.SetLogger(logr.Discard()) // or controller-runtime complains that there is none
	direct, err := client.New(plane.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := ctrlcache.New(plane.Config(), ctrlcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- metadata.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	counted := &counted{Reader: direct}
	for _, namespace := range []string{"team-a", "team-b"} {
		if err := direct.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			t.Fatal(err)
		}
	}
	return &cluster{direct, plane.Config(), counted, metadata, newSources(t, Options{Client: counted, Metadata: metadata})}
}

func (c *cluster) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) update(t *testing.T, object client.Object) {
	t.Helper()
	if err := c.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// expectSettled resolves until the metadata cache has caught up with the API
// server, after which an unchanged reference costs no request.
func (c *cluster) expectSettled(t *testing.T, ref reference.Reference, digest string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		before := c.counted.requests.Load()
		got, err := c.sources.Resolve(t.Context(), ref)
		if err == nil && got == digest && c.counted.requests.Load() == before {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s resolves to %s (%v) and costs requests, want %s and none", ref, got, err, digest)
		}
		time.Sleep(10 * time.Millisecond)
	}
	before := c.counted.requests.Load()
	for range 100 {
		if got := expectResolved(t, c.sources, ref); got != digest {
			t.Fatalf("%s resolves to %s, want %s", ref, got, digest)
		}
	}
	if got := c.counted.requests.Load(); got != before {
		t.Errorf("100 more resolves of an unchanged %s cost %d requests", ref, got-before)
	}
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func TestChartsOfARealAPIServer(t *testing.T) {
	c := startCluster(t)
	first, second := targz.Chart(t), targz.Chart(t, targz.Entry{Name: "demo/values.yaml", Data: "a: 1"})
	firstDigest, secondDigest := artifact.Content{Archive: first}.Digest(), artifact.Content{Archive: second}.Digest()

	t.Run("a ConfigMap that changes", func(t *testing.T) {
		object := &corev1.ConfigMap{ObjectMeta: named("team-a", "charts"), BinaryData: map[string][]byte{"chart.tgz": first, "other.tgz": second}}
		c.create(t, object)
		ref := inConfigMap("team-a", "charts", "")
		c.expectSettled(t, ref, firstDigest)
		c.expectSettled(t, inConfigMap("team-a", "charts", "other.tgz"), secondDigest)
		if artifact := expectFetched(t, c.sources, ref); artifact.Digest != firstDigest || len(artifact.Files) != 1 {
			t.Errorf("fetched %s with %v", artifact.Digest, names(artifact))
		}
		object.BinaryData["chart.tgz"] = second
		c.update(t, object)
		c.expectSettled(t, ref, secondDigest)

		// The same name, another object.
		if err := c.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
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
		direct := newSources(t, Options{Client: c.counted})
		expectFetched(t, direct, inConfigMap("team-a", "direct", ""))
		object.BinaryData["chart.tgz"] = second
		c.update(t, object)
		if got := expectResolved(t, direct, inConfigMap("team-a", "direct", "")); got != secondDigest {
			t.Errorf("without Metadata it resolves to %s, want %s at once", got, secondDigest)
		}
	})

	t.Run("what isn't there yet", func(t *testing.T) {
		for _, test := range []struct {
			ref  reference.Reference
			text string
		}{
			{inConfigMap("team-a", "missing", ""), `chart.configMap: ConfigMap team-a/missing, key "chart.tgz": there is no such ConfigMap; create it in this namespace`},
			{inSecret("team-a", "missing", "a"), `chart.secret: Secret team-a/missing, key "a": there is no such Secret; create it in this namespace`},
			// They exist in team-a.
			{inConfigMap("team-b", "charts", ""), `chart.configMap: ConfigMap team-b/charts, key "chart.tgz": there is no such ConfigMap; create it in this namespace`},
			{inSecret("team-b", "charts", ""), `chart.secret: Secret team-b/charts, key "chart.tgz": there is no such Secret; create it in this namespace`},
			// The object exists.
			{inConfigMap("team-a", "charts", "x"), `chart.configMap: ConfigMap team-a/charts, key "x": there is no such key; add it to binaryData (manifests may be in data, too), or set the right key in the reference`},
			{inSecret("team-a", "charts", "x"), `chart.secret: Secret team-a/charts, key "x": there is no such key; add it to data, or set the right key in the reference`},
		} {
			_, err := c.sources.Resolve(t.Context(), test.ref)
			expectError(t, err, failure.ArtifactNotFound, test.text)
			if !asError(t, err).Wait {
				t.Errorf("%s: it doesn't say to wait", test.ref)
			}
			_, err = c.sources.Fetch(t.Context(), test.ref, "sha256:of something that was there")
			expectError(t, err, failure.ArtifactNotFound, test.text)
		}
		object := &corev1.ConfigMap{ObjectMeta: named("team-a", "missing"), BinaryData: map[string][]byte{"chart.tgz": first}}
		c.create(t, object)
		if got := expectResolved(t, c.sources, inConfigMap("team-a", "missing", "")); got != firstDigest {
			t.Errorf("once it is there it resolves to %s", got)
		}
	})

	t.Run("text in data", func(t *testing.T) {
		c.create(t, &corev1.ConfigMap{ObjectMeta: named("team-a", "text"), Data: map[string]string{"chart.tgz": "H4sIAAAA"}})
		_, err := c.sources.Resolve(t.Context(), inConfigMap("team-a", "text", ""))
		expectError(t, err, failure.ArtifactInvalid, `chart.configMap: ConfigMap team-a/text, key "chart.tgz": the key is in data, which is text and can't hold an archive; `+
			"put it in binaryData, as `kubectl create configmap text --from-file=chart.tgz` does")
	})

	t.Run("manifests in data", func(t *testing.T) {
		const key, page, one, other = "install.yaml", "page.html", "a: 1\n", "a: 2\n"
		object := &corev1.ConfigMap{ObjectMeta: named("team-a", "install"), Data: map[string]string{key: one, page: "<html>"}}
		c.create(t, object)
		c.create(t, &corev1.Secret{ObjectMeta: named("team-a", "install"), StringData: map[string]string{key: one}})
		chart := inConfigMap("team-a", "install", key)
		ref := manifestsLike(chart)
		for range 2 { // in both orders: what the object holds is remembered for both
			expectPlain(t, c.sources, ref, artifact.PlainYAML, one)
			_, err := c.sources.Resolve(t.Context(), chart)
			expectRefused(t, err, failure.ArtifactInvalid, "the key is in data, which is text")
			_, err = c.sources.Fetch(t.Context(), chart, digestOfArchive([]byte(one)))
			expectRefused(t, err, failure.ArtifactInvalid, "the key is in data, which is text")
		}
		expectPlain(t, c.sources, manifestsLike(inSecret("team-a", "install", key)), artifact.PlainYAML, one)
		expectRefused(t, get(t, c.sources, manifestsLike(inConfigMap("team-a", "install", page))), failure.ArtifactInvalid, "it is a web page")
		c.expectSettled(t, ref, digestOfArchive([]byte(one)))
		object.Data[key] = other
		c.update(t, object)
		c.expectSettled(t, ref, digestOfArchive([]byte(other)))
		expectPlain(t, c.sources, ref, artifact.PlainYAML, other)
	})

	t.Run("a Secret's content isn't told", func(t *testing.T) {
		c.create(t, &corev1.Secret{ObjectMeta: named("team-a", "database"), StringData: map[string]string{"password": "TOPSECRET", "TOPSECRETKEY": "x"}})
		for _, key := range []string{"password", "chart.tgz"} {
			ref := inSecret("team-a", "database", key)
			digest, err := c.sources.Resolve(t.Context(), ref)
			if err == nil {
				_, err = c.sources.Fetch(t.Context(), ref, digest)
			}
			if err == nil || strings.Contains(err.Error(), "TOPSECRET") {
				t.Errorf("the error is %v", err)
			}
		}
	})

	t.Run("an API server that is away", func(t *testing.T) {
		config := rest.CopyConfig(c.config)
		config.Host = "https://127.0.0.1:1"
		away, err := client.New(config, client.Options{})
		if err != nil {
			t.Skipf("the client asks the API server for its kinds when it is made: %v", err)
		}
		_, err = newSources(t, Options{Client: away}).Resolve(t.Context(), inConfigMap("team-a", "charts", ""))
		if known := asError(t, err); known.Reason != failure.SourceUnavailable || known.Wait {
			t.Errorf("reason %s, wait %v; want %s, and a retry", known.Reason, known.Wait, failure.SourceUnavailable)
		}
	})
}
