// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
)

const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// Repository of a registry, to put signatures into.
func Repository(t testing.TB, r *registry.Registry, name string) *remote.Repository {
	t.Helper()
	repository := r.Repository(t, name)
	repository.SkipReferrersGC = true
	return repository
}

// Attach puts signatures of the manifest at the tag where cosign looks for them.
func Attach(t testing.TB, to *remote.Repository, manifest string, layers ...Layer) {
	t.Helper()
	described := make([]ocispec.Descriptor, 0, len(layers))
	for _, layer := range layers {
		blob := push(t, to, "application/vnd.dev.cosign.simplesigning.v1+json", layer.Payload)
		blob.Annotations = layer.Annotations
		described = append(described, blob)
	}
	PutManifest(t, to, SignatureTag(manifest), ocispec.Manifest{Layers: described})
}

// SignatureTag is where cosign looks for signatures of the manifest.
func SignatureTag(manifest string) string { return strings.Replace(manifest, ":", "-", 1) + ".sig" }

// Refer makes a bundle refer to the manifest.
func Refer(t testing.TB, to *remote.Repository, manifest string, bundle []byte) {
	t.Helper()
	subject, err := to.Manifests().Resolve(t.Context(), manifest)
	must.Succeed(t, err)
	PutManifest(t, to, "", ocispec.Manifest{
		ArtifactType: bundleType, Subject: &subject, Layers: []ocispec.Descriptor{push(t, to, bundleType, bundle)},
	})
}

// ReferOften makes one bundle refer to the manifest that many times, in the list
// that registries without an API for referrers have at a tag.
func ReferOften(t testing.TB, to *remote.Repository, manifest string, bundle []byte, times int) {
	t.Helper()
	Refer(t, to, manifest, bundle)
	tag := strings.Replace(manifest, ":", "-", 1)
	_, data, err := oras.FetchBytes(t.Context(), to, tag, oras.DefaultFetchBytesOptions)
	must.Succeed(t, err)
	var list ocispec.Index
	must.Succeed(t, json.Unmarshal(data, &list))
	list.Manifests = slices.Repeat(list.Manifests[:1], times)
	data = marshalJSON(t, list)
	must.Succeed(t, to.Manifests().PushReference(t.Context(), describe(ocispec.MediaTypeImageIndex, data), bytes.NewReader(data), tag))
}

// PutManifest puts a manifest into the registry, and returns its digest.
func PutManifest(t testing.TB, to *remote.Repository, tag string, manifest ocispec.Manifest) string {
	t.Helper()
	manifest.Versioned, manifest.MediaType = specs.Versioned{SchemaVersion: 2}, ocispec.MediaTypeImageManifest
	manifest.Config = push(t, to, ocispec.MediaTypeEmptyJSON, []byte("{}"))
	data := marshalJSON(t, manifest)
	described := describe(ocispec.MediaTypeImageManifest, data)
	described.ArtifactType = manifest.ArtifactType
	var err error
	if tag == "" {
		err = to.Manifests().Push(t.Context(), described, bytes.NewReader(data))
	} else {
		err = to.Manifests().PushReference(t.Context(), described, bytes.NewReader(data), tag)
	}
	must.Succeed(t, err)
	return described.Digest.String()
}

// push puts a blob into the registry, if it isn't there.
func push(t testing.TB, to *remote.Repository, mediaType string, data []byte) ocispec.Descriptor {
	t.Helper()
	described := describe(mediaType, data)
	if there, err := to.Blobs().Exists(t.Context(), described); err == nil && there {
		return described
	}
	must.Succeed(t, to.Blobs().Push(t.Context(), described, bytes.NewReader(data)))
	return described
}

func describe(mediaType string, data []byte) ocispec.Descriptor {
	sum := sha256.Sum256(data)
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.NewDigestFromBytes(digest.SHA256, sum[:]), Size: int64(len(data))}
}
