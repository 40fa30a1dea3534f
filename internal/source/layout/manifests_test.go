// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/test/cost"
)

func TestHostileJSONTakesLittleMemory(t *testing.T) {
	cost.ExpectLittle(t, map[string]cost.Parsing{
		"layers of a chart": {Data: cost.ManyObjects(`{"layers":[`, MaxManifest), Refused: true, Parse: func(data []byte) error {
			_, err := Chart(data)
			return err
		}},
		"layers of files": {Data: cost.ManyObjects(`{"layers":[`, MaxManifest), Refused: true, Parse: func(data []byte) error {
			_, err := Archive(data)
			return err
		}},
		"layers that are files": {Data: cost.ManyObjects(`{"layers":[`, MaxManifest), Refused: true, Parse: func(data []byte) error {
			_, _, err := Layers(data)
			return err
		}},
	})
}

// TestLayerWithFiles finds the layer in manifests as different tools write them.
func TestLayerWithFiles(t *testing.T) {
	digest := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	layer := func(mediaType, c string) string {
		return `{"mediaType":"` + mediaType + `","digest":"` + digest(c) + `","size":1}`
	}
	cases := map[string]struct{ manifest, want, says string }{
		"Flux":              {`{"layers":[` + layer("application/vnd.cncf.flux.content.v1.tar+gzip", "a") + `]}`, digest("a"), ""},
		"oras, a directory": {`{"layers":[` + layer("application/vnd.oci.image.layer.v1.tar+gzip", "a") + `]}`, digest("a"), ""},
		"oras, a file":      {`{"layers":[` + layer("application/vnd.oci.image.layer.v1.tar", "a") + `]}`, digest("a"), ""},
		"an image":          {`{"layers":[` + layer("application/vnd.docker.image.rootfs.diff.tar.gzip", "a") + `]}`, digest("a"), ""},
		"with a text":       {`{"layers":[` + layer("text/plain", "b") + `,` + layer("application/vnd.oci.image.layer.v1.tar+gzip", "a") + `]}`, digest("a"), ""},
		"two archives":      {`{"layers":[` + layer("x/tar+gzip", "b") + `,` + layer("x/tar+gzip", "a") + `]}`, "", "2 of its 2 layers"},
		"none":              {`{"layers":[]}`, "", "0 of its 0 layers"},
		"an index":          {`{"mediaType":"application/vnd.oci.image.index.v1+json"}`, "", "index"},
		"a chart":           {`{"layers":[` + layer(ChartLayer, "a") + `]}`, "", "chart.oci"},
		"another digest":    {`{"layers":[{"mediaType":"x/tar+gzip","digest":"sha512:ab","size":1}]}`, "", "SHA-256"},
		"no JSON":           {`<html>`, "", "no JSON"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Archive([]byte(c.manifest))
			if got != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func FuzzListing(f *testing.F) {
	file := func(name string) Part { return PartOf(name, []byte(name)) }
	for _, parts := range [][]Part{{file("a"), file("b")}, {file("a"), file("a")}, {file("../a")}, nil} {
		f.Add(Listing(parts))
	}
	limits := artifact.Limits{}.WithDefaults()
	f.Fuzz(func(t *testing.T, data []byte) {
		parts, listed, err := Parts(data, limits)
		if !listed || err != nil {
			return
		}
		for i, p := range parts {
			if artifact.CheckName(p.Name, limits) != nil || strings.Contains(p.Name, "/") || !artifact.IsDigest(p.Digest) || i > 0 && parts[i-1].Name >= p.Name {
				t.Errorf("file %+v", p)
			}
		}
		if bytes.HasPrefix(data, []byte(listingDomain)) && !bytes.Equal(Listing(parts), data) {
			t.Error("there is another way to write it")
		}
	})
}
