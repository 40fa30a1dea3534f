// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	orasremote "oras.land/oras-go/v2/registry/remote"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/policy"
)

// provenanceLayer is the type of a layer that is a provenance file.
const provenanceLayer = "application/vnd.cncf.helm.chart.provenance.v1.prov"

// provenance checks the provenance file that is a layer beside the archive's.
func (a Artifact) provenance(ctx context.Context, c *auth.Client, repository *orasremote.Repository, manifest ocispec.Manifest, digest string, want policy.Policy) error {
	at := slices.IndexFunc(manifest.Layers, func(layer ocispec.Descriptor) bool { return layer.MediaType == provenanceLayer })
	if at < 0 {
		return want.Unsigned("there is no layer of type "+provenanceLayer, "package it with `helm package --sign`, and push it with its .prov beside it")
	}
	layer := manifest.Layers[at]
	if layer.Size > policy.MaxProvenance {
		return failure.TooLarge("the provenance file", policy.MaxProvenance)
	}
	file, err := fetchPart(ctx, repository.Blobs(), layer, policy.MaxProvenance)
	if errors.Is(err, errUnreadable) {
		return failure.New(failure.ArtifactInvalid, "its provenance file has a digest that isn't SHA-256; push it again")
	}
	if err != nil {
		return err
	}
	return want.CheckProvenance(file, digest, c.Ref)
}
