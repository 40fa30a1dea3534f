// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	orascontent "oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	orasremote "oras.land/oras-go/v2/registry/remote"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/verify"
)

// referring looks at the bundles that refer to the manifest.
func (s *signatures) referring(ctx context.Context, repository *orasremote.Repository, described ocispec.Descriptor, manifest []byte) (bool, error) {
	repository.ReferrerListMaxPages = maxPages
	var bundles []ocispec.Descriptor
	err := referrers(ctx, repository, described, func(page []ocispec.Descriptor) error {
		for _, referrer := range page {
			if predicate := referrer.Annotations[predicateAnnotation]; predicate == "" || predicate == verify.SignaturePredicate {
				bundles = append(bundles, referrer)
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, errdef.ErrSizeExceedsLimit), errors.Is(err, errdef.ErrTooManyPages):
		s.flaws = append(s.flaws, "the list of its referrers is too long")
	case err != nil:
		return false, err
	}
	slices.Reverse(bundles) // new ones are at the end of most lists; there is no order that is promised
	return s.any(bundles, func(referrer ocispec.Descriptor) error {
		bundle, err := fetchBundle(ctx, repository, referrer)
		if err != nil {
			return err
		}
		return s.want.Cosign.VerifyBundle(manifest, bundle)
	})
}

// referrers lists what refers to the manifest. A registry that knows no such lists should
// answer 404, but some answer otherwise: then the list is where it is without them.
func referrers(ctx context.Context, repository *orasremote.Repository, described ocispec.Descriptor, list func([]ocispec.Descriptor) error) error {
	err := repository.Referrers(ctx, described, verify.BundleType, list)
	var answer *egress.Fault
	if !errors.As(err, &answer) || !unknownToIt(answer) {
		return err
	}
	if repository.SetReferrersCapability(false) != nil { // the lists are there, so that isn't it
		return err
	}
	return repository.Referrers(ctx, described, verify.BundleType, list)
}

// unknownToIt tells whether a registry may answer so because it doesn't know what it is
// asked for. A proxy before it may, too: 403 of what nobody needed before. (What is
// missed that way is a signature: nothing unsigned gets in.)
func unknownToIt(answer *egress.Fault) bool {
	return answer.Status >= 400 && answer.Status < 500 && answer.RetryAfter == 0 || answer.Status == http.StatusNotImplemented
}

// fetchBundle reads the bundle of a manifest that has one.
func fetchBundle(ctx context.Context, repository *orasremote.Repository, referrer ocispec.Descriptor) ([]byte, error) {
	data, err := fetchPart(ctx, repository.Manifests(), referrer, maxPayload)
	if err != nil {
		return nil, err
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(data, &manifest); err != nil || len(manifest.Layers) != 1 {
		return nil, errUnreadable
	}
	return fetchPart(ctx, repository.Blobs(), manifest.Layers[0], maxBundle)
}

// errUnreadable is the error of a part that is out of all proportion.
var errUnreadable = errors.New("unreadable")

// fetchPart reads something small by its digest, which it verifies.
func fetchPart(ctx context.Context, from orascontent.Fetcher, part ocispec.Descriptor, most int64) ([]byte, error) {
	if part.Size < 0 || part.Size > most || !artifact.IsDigest(part.Digest.String()) {
		return nil, errUnreadable
	}
	return orascontent.FetchAll(ctx, from, part)
}
