// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// layer of a Cluster Stack's release, as a registry may have it.
type layer struct{ kind, title, digest, data string }

// releaseManifest lists the layers.
func releaseManifest(layers ...layer) string {
	parts := make([]string, 0, len(layers))
	for _, l := range layers {
		if l.digest == "" {
			l.digest = digestOf(l.data)
		}
		parts = append(parts, fmt.Sprintf(`{"mediaType": %q, "digest": %q, "size": %d, "annotations": {"org.opencontainers.image.title": %q}}`, l.kind, l.digest, len(l.data), l.title))
	}
	return `{"schemaVersion": 2, "mediaType": "` + manifestType + `", "artifactType": "` + layout.ClusterStack + `", "layers": [` + strings.Join(parts, ", ") + `]}`
}

func TestReleasesInRegistries(t *testing.T) {
	const yaml, class = "application/vnd.scs.metadata.layer.v1+yaml", "application/vnd.scs.cluster-class.v1.tar+gzip"
	for name, tc := range map[string]struct {
		layers []layer
		reason string
	}{
		"good": {layers: []layer{{kind: yaml, title: "metadata.yaml", data: "a"}, {kind: yaml, title: "b.yaml", data: "b"},
			{kind: class, title: "../class.tgz", digest: "sha256:gone", data: "c"}}}, // not read at all
		"a path":          {[]layer{{kind: yaml, title: "../metadata.yaml", data: "a"}}, failure.ArtifactRefused},
		"a directory":     {[]layer{{kind: yaml, title: "a/metadata.yaml", data: "a"}}, failure.ArtifactRefused},
		"no title":        {[]layer{{kind: yaml, data: "a"}}, failure.ArtifactRefused},
		"twice":           {[]layer{{kind: yaml, title: "a", data: "a"}, {kind: yaml, title: "a", data: "b"}}, failure.ArtifactRefused},
		"another hash":    {[]layer{{kind: yaml, title: "a", digest: "sha512:" + strings.Repeat("a", 128), data: "a"}}, failure.ArtifactInvalid},
		"another content": {[]layer{{kind: yaml, title: "a", digest: digestOf("x"), data: "a"}}, failure.DigestMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := releaseManifest(tc.layers...)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for _, l := range tc.layers {
					if strings.HasSuffix(r.URL.Path, "/blobs/"+l.digest) || strings.HasSuffix(r.URL.Path, "/blobs/"+digestOf(l.data)) {
						w.Header().Set("Content-Length", fmt.Sprint(len(l.data)))
						_, _ = w.Write([]byte(l.data))
						return
					}
				}
				if strings.Contains(r.URL.Path, "/blobs/") {
					http.NotFound(w, r)
					return
				}
				serve(w, manifestType, manifest)
			}))
			defer server.Close()
			sources, _ := remoteSources(t, source.Options{})
			ref := reference.BundleOf("fleet", &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
				OCI: &addonsv1.OCISource{URL: "oci://" + strings.TrimPrefix(server.URL, "http://") + "/demo", PlainHTTP: ptr.To(true)}, Version: "v1"}})
			digest, err := sources.Resolve(t.Context(), ref)
			if want := (artifact.Content{Archive: []byte(manifest)}).Digest(); err != nil || digest != want {
				t.Fatalf("Resolve() = %s, %v; want that of the manifest, %s", digest, err, want)
			}
			artifact, err := sources.Fetch(t.Context(), ref, digest)
			if expectRefused(t, err, tc.reason); tc.reason != "" {
				return
			}
			if err != nil || len(artifact.Files) != 2 || artifact.Files[0].Name != "b.yaml" || string(artifact.Files[1].Data) != "a" {
				t.Errorf("%+v, %v", artifact, err)
			}
		})
	}
}
