// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/versions"
	"github.com/cluster-chandler/chandler/test/fluxserver"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// known are objects as a watch has them, by "namespace/name", or errors.
type known map[string]any

func (k known) Get(_ context.Context, kind schema.GroupKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	switch is := k[key.String()].(type) {
	case *unstructured.Unstructured:
		if is.GetKind() == kind.Kind {
			return is, nil
		}
	case error:
		return nil, is
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
}

func (k known) put(o *unstructured.Unstructured) { k[client.ObjectKeyFromObject(o).String()] = o }

// inFlux refers to the artifact of an object of Flux, of a version or the newest one.
func inFlux(namespace, kind, name, version, digest string) reference.Reference {
	return reference.ChartOf(namespace, addonsv1.ChartSource{Flux: &addonsv1.FluxSource{Kind: kind, Name: name, Revision: version, Digest: digest}})
}

var ofFlux = versions.Latest{What: "artifact of Flux"}

// TestFlux follows artifacts of charts, a kustomization, manifests and a bundle, each of which is fetched once.
func TestFlux(t *testing.T) {
	server, objects, dir := fluxserver.Start(t), known{}, t.TempDir()
	files := targz.Files(t, map[string]string{"kustomization.yaml": "resources: [install.yaml]\n", "install.yaml": installYAML, "charts/cni/Chart.yaml": bundledChart})
	repository := server.Object(t, "GitRepository", "team-a", "apps", "main@sha1:1", files)
	objects.put(repository)
	objects.put(server.Object(t, "HelmChart", "team-a", "web", "1.0.0", targz.Files(t, chartFiles("demo", "1.0.0"))))
	sources, clock := remoteSources(t, source.Options{Flux: objects, Store: storeAt(dir)})
	pin := func(ref reference.Reference) reference.Reference {
		t.Helper()
		version := newestOf(t, sources, ref, ofFlux, clock.Now())
		digest, err := sources.Pin(t.Context(), ref, version, clock.Now())
		must.Succeed(t, err)
		return ref.WithVersion(version).WithDigest(digest)
	}
	expectFetched(t, sources, pin(inFlux("team-a", "HelmChart", "web", "", "")))
	var before []reference.Reference
	for _, kind := range []artifact.Kind{artifact.KindKustomization, artifact.KindManifests, artifact.KindBundle} {
		ref := pin(as(kind, inFlux("team-a", "GitRepository", "apps", "", "")))
		if !strings.HasPrefix(ref.Chart.Flux.Revision, "main@sha1:1#") || ref.Chart.Flux.Digest != digestOf(files) {
			t.Errorf("pinned %+v", ref.Chart.Flux)
		}
		expectFetched(t, sources, ref)
		before = append(before, ref)
	}
	must.Equal(t, int32(2), server.Requests.Load(), "requests, one for each artifact")

	// The same revision has another artifact.
	repository = server.Object(t, "GitRepository", "team-a", "apps", "main@sha1:1", targz.Files(t, map[string]string{"install.yaml": "a: 2\n"}))
	objects.put(repository)
	keys := sources.Keys(t.Context(), before[0])
	expectPlainFiles(t, sources, pin(as(artifact.KindManifests, inFlux("team-a", "GitRepository", "apps", "", ""))), "install.yaml")

	// The object is gone: what is known stays, also after a restart.
	clear(objects)
	if sources.Keys(t.Context(), before[0]) == keys {
		t.Error("nothing tells that the object is gone")
	}
	_, err := sources.Newest(t.Context(), before[0], ofFlux, clock.Now())
	expectRefused(t, err, failure.ArtifactNotFound)
	restarted, _ := remoteSources(t, source.Options{Flux: objects, Store: storeAt(dir)})
	for _, ref := range before {
		expectFetched(t, restarted, ref)
	}
	empty, _ := remoteSources(t, source.Options{Flux: objects})
	expectRefused(t, get(t, empty, before[0]), failure.ArtifactNotFound)
}

func expectPlainFiles(t *testing.T, sources *source.Sources, ref reference.Reference, want ...string) {
	t.Helper()
	must.Equal(t, want, namesOf(expectFetched(t, sources, ref)), ref)
}

// TestFluxOfAnotherNamespace has two namespaces name an object of the same name: each has its own.
func TestFluxOfAnotherNamespace(t *testing.T) {
	server, objects := fluxserver.Start(t), known{}
	objects.put(server.Object(t, "Bucket", "team-a", "apps", "sha256:1", targz.Files(t, map[string]string{"a.yaml": installYAML})))
	sources, clock := remoteSources(t, source.Options{Flux: objects})
	ref := as(artifact.KindManifests, inFlux("team-a", "Bucket", "apps", "", ""))
	version := newestOf(t, sources, ref, ofFlux, clock.Now())
	digest, err := sources.Pin(t.Context(), ref, version, clock.Now())
	must.Succeed(t, err)
	expectFetched(t, sources, ref.WithVersion(version).WithDigest(digest))
	expectRefused(t, get(t, sources, as(artifact.KindManifests, inFlux("team-b", "Bucket", "apps", version, digest))), failure.ArtifactNotFound)
}

// TestFluxSaysWhatIsWrong has objects without an artifact that can be used.
func TestFluxSaysWhatIsWrong(t *testing.T) {
	server := fluxserver.Start(t)
	archive := targz.Files(t, map[string]string{"a.yaml": installYAML})
	with := func(change map[string]any) *unstructured.Unstructured {
		o := server.Object(t, "GitRepository", "team-a", "apps", "main@sha1:1", archive)
		has, _, _ := unstructured.NestedMap(o.Object, "status", "artifact")
		maps.Copy(has, change)
		must.Succeed(t, unstructured.SetNestedMap(o.Object, has, "status", "artifact"))
		return o
	}
	none := with(nil)
	delete(none.Object, "status")
	resource := schema.GroupResource{Group: "source.toolkit.fluxcd.io", Resource: "gitrepositories"}
	for name, tc := range map[string]struct {
		is     any
		reason string
	}{
		"no object":               {nil, failure.ArtifactNotFound},
		"no kind":                 {&meta.NoKindMatchError{}, failure.ArtifactNotFound},
		"no right":                {apierrors.NewForbidden(resource, "apps", nil), failure.SourceUnauthorized},
		"no answer":               {apierrors.NewTimeoutError("", 1), failure.SourceUnavailable},
		"no artifact":             {none, failure.ArtifactNotFound},
		"another kind of digest":  {with(map[string]any{"digest": "sha512:" + strings.Repeat("0", 128)}), failure.ArtifactInvalid},
		"no URL":                  {with(map[string]any{"url": "http://%"}), failure.ArtifactInvalid},
		"another content":         {with(map[string]any{"digest": "sha256:" + strings.Repeat("0", 64)}), failure.ArtifactChanged},
		"no file":                 {with(map[string]any{"url": server.URL + "/none"}), failure.ArtifactNotFound},
		"the node's own address":  {with(map[string]any{"url": "http://169.254.169.254/latest"}), failure.ArtifactRefused},
		"a part that leads above": {with(map[string]any{"url": server.URL + "/x/../y"}), failure.ArtifactRefused},
	} {
		t.Run(name, func(t *testing.T) {
			sources, clock := remoteSources(t, source.Options{Flux: known{"team-a/apps": tc.is}})
			ref := as(artifact.KindManifests, inFlux("team-a", "GitRepository", "apps", "", ""))
			version, err := sources.Newest(t.Context(), ref, ofFlux, time.Time{})
			if err == nil {
				_, err = sources.Pin(t.Context(), ref, version, clock.Now())
			}
			expectRefused(t, err, tc.reason)
		})
	}
}
