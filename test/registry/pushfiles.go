// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	orasremote "oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/cluster-chandler/chandler/test/must"
)

// clusterStackType is the type of a Cluster Stack's release.
const clusterStackType = "application/vnd.scs.cluster-stacks.v1"

// PushRelease puts a release of a Cluster Stack into the registry, as its tools do: a
// layer for each file, with the file's name in its title. It returns the manifest's
// digest.
func (r *Registry) PushRelease(t testing.TB, files map[string][]byte, repository, tag string) string {
	t.Helper()
	target := r.Repository(t, repository)
	var layers []ocispec.Descriptor
	for _, name := range slices.Sorted(maps.Keys(files)) {
		layer := content.NewDescriptorFromBytes(layerType(name), files[name])
		layer.Annotations = map[string]string{ocispec.AnnotationTitle: name}
		must.Succeed(t, target.Push(t.Context(), layer, bytes.NewReader(files[name])))
		layers = append(layers, layer)
	}
	return pack(t, target, clusterStackType, layers, tag, "")
}

// PushArchive puts an archive of files into the registry, as the only layer of an
// artifact that says its version, the tag's. It returns the manifest's digest.
func (r *Registry) PushArchive(t testing.TB, archive []byte, repository, tag string) string {
	t.Helper()
	return r.PushArchiveAs(t, archive, repository, tag, tag)
}

// PushArchiveAs does that with an artifact that says another version, none if it is "".
func (r *Registry) PushArchiveAs(t testing.TB, archive []byte, repository, tag, version string) string {
	t.Helper()
	target := r.Repository(t, repository)
	layer := content.NewDescriptorFromBytes(ocispec.MediaTypeImageLayerGzip, archive)
	must.Succeed(t, target.Push(t.Context(), layer, bytes.NewReader(archive)))
	return pack(t, target, "application/vnd.example.archive", []ocispec.Descriptor{layer}, tag, version)
}

// Repository of the registry, as somebody who may write to it.
func (r *Registry) Repository(t testing.TB, name string) *orasremote.Repository {
	t.Helper()
	repository, err := orasremote.NewRepository(r.Host + "/" + name)
	must.Succeed(t, err)
	transport := &http.Transport{TLSClientConfig: trust(t, r.CA)}
	t.Cleanup(transport.CloseIdleConnections)
	client := &auth.Client{Client: &http.Client{Transport: transport}}
	if users := slices.Sorted(maps.Keys(r.options.Users)); len(users) > 0 {
		client.Credential = auth.StaticCredential(r.Host, auth.Credential{Username: users[0], Password: r.options.Users[users[0]]})
	}
	repository.Client, repository.PlainHTTP = client, r.options.PlainHTTP
	return repository
}

func pack(t testing.TB, target *orasremote.Repository, kind string, layers []ocispec.Descriptor, tag, version string) string {
	t.Helper()
	options := oras.PackManifestOptions{Layers: layers}
	if version != "" {
		options.ManifestAnnotations = map[string]string{ocispec.AnnotationVersion: version}
	}
	manifest, err := oras.PackManifest(t.Context(), target, oras.PackManifestVersion1_1, kind, options)
	must.Succeed(t, err)
	must.Succeed(t, target.Tag(t.Context(), manifest, tag))
	return manifest.Digest.String()
}

func layerType(name string) string {
	switch {
	case strings.Contains(name, "-cluster-addon-"):
		return "application/vnd.scs.cluster-addon.layer.v1.tar+gzip"
	case strings.Contains(name, "-cluster-class-"):
		return "application/vnd.scs.cluster-class.v1.tar+gzip"
	case name == "metadata.yaml":
		return "application/vnd.scs.metadata.layer.v1+yaml"
	}
	return "application/vnd.scs.cluster-addon.config.layer.v1+yaml"
}
