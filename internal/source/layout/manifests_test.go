// SPDX-License-Identifier: Apache-2.0

package layout_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/layout"
)

// TestLayerWithFiles finds the layer in manifests as different tools write them.
func TestLayerWithFiles(t *testing.T) {
	digest := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	layer := func(mediaType, c string) string {
		return `{"mediaType":"` + mediaType + `","digest":"` + digest(c) + `","size":1}`
	}
	cases := map[string]struct{ manifest, want string }{
		"Flux":              {`{"layers":[` + layer("application/vnd.cncf.flux.content.v1.tar+gzip", "a") + `]}`, digest("a")},
		"oras, a directory": {`{"layers":[` + layer("application/vnd.oci.image.layer.v1.tar+gzip", "a") + `]}`, digest("a")},
		"oras, a file":      {`{"layers":[` + layer("application/vnd.oci.image.layer.v1.tar", "a") + `]}`, digest("a")},
		"an image":          {`{"layers":[` + layer("application/vnd.docker.image.rootfs.diff.tar.gzip", "a") + `]}`, digest("a")},
		"with a text":       {`{"layers":[` + layer("text/plain", "b") + `,` + layer("application/vnd.oci.image.layer.v1.tar+gzip", "a") + `]}`, digest("a")},
		"two archives":      {`{"layers":[` + layer("x/tar+gzip", "b") + `,` + layer("x/tar+gzip", "a") + `]}`, ""},
		"none":              {`{"layers":[]}`, ""},
		"an index":          {`{"mediaType":"application/vnd.oci.image.index.v1+json"}`, ""},
		"a chart":           {`{"layers":[` + layer(layout.ChartLayer, "a") + `]}`, ""},
		"another digest":    {`{"layers":[{"mediaType":"x/tar+gzip","digest":"sha512:ab","size":1}]}`, ""},
		"no JSON":           {`<html>`, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := layout.Digest(artifact.KindManifests, "", []byte(c.manifest))
			failed, refused := errors.AsType[*failure.Error](err)
			if got != c.want || refused != (c.want == "") || refused && failed.Reason != failure.ArtifactInvalid {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func FuzzListing(f *testing.F) {
	file := func(name string) layout.Part { return layout.PartOf(name, []byte(name)) }
	for _, parts := range [][]layout.Part{{file("a"), file("b")}, {file("a"), file("a")}, {file("../a")}, nil} {
		f.Add(layout.Listing(parts))
	}
	limits := artifact.Limits{}.WithDefaults()
	f.Fuzz(func(t *testing.T, data []byte) {
		parts, listed, err := layout.Parts(data, limits)
		if !listed || err != nil {
			return
		}
		for i, p := range parts {
			if artifact.CheckName(p.Name) != nil || strings.Contains(p.Name, "/") || !artifact.IsDigest(p.Digest) || i > 0 && parts[i-1].Name >= p.Name {
				t.Errorf("file %+v", p)
			}
		}
		if bytes.HasPrefix(data, []byte("chandler release v1\n")) && !bytes.Equal(layout.Listing(parts), data) {
			t.Error("there is another way to write it")
		}
	})
}
