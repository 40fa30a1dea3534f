// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	orascontent "oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	orasremote "oras.land/oras-go/v2/registry/remote"

	"github.com/cluster-chandler/chandler/internal/render"
)

// clusterStack is the type of a Cluster Stack's release in a registry: it has a
// layer for each file, with the file's name in its title.
const clusterStack = "application/vnd.scs.cluster-stacks.v1"

// Layers of a Cluster Stack's release that make no add-ons.
var unusedLayers = []string{"application/vnd.scs.cluster-class.", "application/vnd.scs.node-image"}

// digestOfBundle is that of the manifest, if it lists the files of the bundle, or
// that of the layer that is an archive of them.
func digestOfBundle(described ocispec.Descriptor, data []byte) (string, error) {
	if _, layered, err := layersOf(data); layered || err != nil {
		return described.Digest.String(), err
	}
	return filesOfManifest(data)
}

// layersOf returns the layers that are one file each.
func layersOf(data []byte) (layers []ocispec.Descriptor, layered bool, err error) {
	var manifest ocispec.Manifest
	if err := json.Unmarshal(data, &manifest); err != nil {
		return nil, false, failure(ReasonArtifactInvalid, "its manifest is no JSON")
	}
	if manifest.ArtifactType != clusterStack && manifest.Config.MediaType != clusterStack {
		return nil, false, nil
	}
	layers = slices.DeleteFunc(manifest.Layers, func(layer ocispec.Descriptor) bool {
		return slices.ContainsFunc(unusedLayers, func(prefix string) bool { return strings.HasPrefix(layer.MediaType, prefix) })
	})
	return layers, true, nil
}

// layered fetches the files of a bundle whose manifest lists them; false if the
// digest isn't that of such a manifest.
func (c ociChart) layered(ctx context.Context, repository *orasremote.Repository, limits Limits, digest string) (content, bool, error) {
	described, body, err := repository.Manifests().FetchReference(ctx, digest)
	if errors.Is(err, errdef.ErrNotFound) {
		return content{}, false, nil
	}
	if err != nil {
		return content{}, false, err
	}
	defer release(body)
	if described.Size > maxManifest {
		return content{}, false, tooManyBytes("the manifest", maxManifest)
	}
	manifest, err := orascontent.ReadAll(body, described)
	if err != nil {
		return content{}, false, err
	}
	layers, layered, err := layersOf(manifest)
	if !layered || err != nil {
		return content{}, false, err
	}
	got := content{manifest: manifest, files: make([]render.File, 0, len(layers))}
	left := limits.TotalBytes
	for _, layer := range layers {
		file, err := c.layer(ctx, repository, limits, layer)
		if err != nil {
			return content{}, false, err
		}
		if left -= int64(len(file.Data)); left < 0 {
			return content{}, false, tooManyBytes("its content", limits.TotalBytes)
		}
		if slices.ContainsFunc(got.files, func(other render.File) bool { return other.Name == file.Name }) {
			return content{}, false, failure(ReasonArtifactRefused, "entry %s is there twice", quote(file.Name))
		}
		got.files = append(got.files, file)
	}
	slices.SortFunc(got.files, func(a, b render.File) int { return strings.Compare(a.Name, b.Name) })
	return got, true, nil
}

// layer fetches one file. Its size and digest are verified.
func (c ociChart) layer(ctx context.Context, repository *orasremote.Repository, limits Limits, layer ocispec.Descriptor) (render.File, error) {
	name := layer.Annotations[ocispec.AnnotationTitle]
	if err := checkName(name, limits); err != nil {
		return render.File{}, err
	}
	switch {
	case strings.Contains(name, "/"):
		return render.File{}, failure(ReasonArtifactRefused, "entry %s has a name with more than one part", quote(name))
	case !sha256Digest.MatchString(layer.Digest.String()):
		return render.File{}, failure(ReasonArtifactInvalid, "layer %s has a digest that isn't SHA-256", quote(name))
	case layer.Size > limits.ArchiveBytes:
		return render.File{}, tooManyBytes("layer "+quote(name), limits.ArchiveBytes)
	}
	data, err := orascontent.FetchAll(ctx, repository.Blobs(), layer)
	if errors.Is(err, errdef.ErrNotFound) {
		return render.File{}, gone(layer.Digest.String(), "publish the release again, under another version")
	}
	if err != nil {
		return render.File{}, err
	}
	return render.File{Name: name, Data: data}, nil
}
