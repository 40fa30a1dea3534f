// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	orascontent "oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	orasremote "oras.land/oras-go/v2/registry/remote"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/policy"
	"github.com/cluster-chandler/chandler/internal/verify"
)

// Limits of the signatures that are looked at. Whoever may push to a repository may add more, and
// hide good ones behind them. Signatures above the limits take no time and memory.
const (
	maxSignatures = 32       // of each of the two ways to keep them, the newest
	maxPayload    = 64 << 10 // bytes; a text of 300
	maxBundle     = 1 << 20  // bytes; about 10 KiB
	maxPages      = 8        // of a list of referrers
	maxFlaws      = 3        // that a message names
)

const (
	// provenanceLayer is the type of a layer that is a provenance file.
	provenanceLayer = "application/vnd.cncf.helm.chart.provenance.v1.prov"
	// signatureLayer is the type of a layer below the tag sha256-<hex>.sig.
	signatureLayer = "application/vnd.dev.cosign.simplesigning.v1+json"
	// predicateAnnotation says, before a bundle is fetched, what is in it.
	predicateAnnotation = "dev.sigstore.bundle.predicateType"
)

// Verify checks the manifest's signature, and then that the content is a part of
// the manifest. It asks for the manifest again, as what is known may be the
// content's digest alone; if the tag is another's by now, that isn't it. It returns the version
// that the manifest says it is of, "" if it says none.
func (a Artifact) Verify(ctx context.Context, c *auth.Client, digest string, want policy.Policy) (string, error) {
	repository, err := a.repository(c)
	if err != nil {
		return "", err
	}
	described, data, err := a.manifest(ctx, repository)
	if err != nil {
		return "", err
	}
	if want.Cosign != nil {
		if err := signedManifest(ctx, repository, described, data, want); err != nil {
			return "", err
		}
	}
	manifest, err := layout.Parse(data)
	if err != nil {
		return "", err
	}
	isPart := func(layer ocispec.Descriptor) bool { return layer.Digest.String() == digest }
	if described.Digest.String() != digest && !slices.ContainsFunc(manifest.Layers, isPart) {
		return "", failure.Gone(digest, "set oci.digest to the manifest that is to be installed, or publish the chart under another version")
	}
	if want.Keyring != nil {
		err = checkProvenance(ctx, c, repository, manifest, digest, want)
	}
	return manifest.Annotations[ocispec.AnnotationVersion], err
}

// checkProvenance checks the provenance file that is a layer beside the archive's.
func checkProvenance(ctx context.Context, c *auth.Client, repository *orasremote.Repository, manifest ocispec.Manifest, digest string, want policy.Policy) error {
	at := slices.IndexFunc(manifest.Layers, func(layer ocispec.Descriptor) bool { return layer.MediaType == provenanceLayer })
	if at < 0 {
		return want.Unsigned("there is no layer of type "+provenanceLayer, "package it with `helm package --sign`, and push it with its .prov beside it")
	}
	file, err := fetchPart(ctx, repository.Blobs(), manifest.Layers[at], policy.MaxProvenance)
	if errors.Is(err, errUnreadable) {
		return failure.New(failure.ArtifactInvalid, "its provenance file is larger than %d bytes, or has a digest that isn't SHA-256; push it again", policy.MaxProvenance)
	}
	if err != nil {
		return err
	}
	return want.CheckProvenance(file, digest, c.Ref)
}

// signedManifest looks for a signature that counts: first where cosign used to keep
// them, then where it does now.
func signedManifest(ctx context.Context, repository *orasremote.Repository, described ocispec.Descriptor, manifest []byte, want policy.Policy) error {
	seen := &signatures{want: want}
	tag := strings.Replace(described.Digest.String(), ":", "-", 1) + ".sig"
	if good, err := seen.tagged(ctx, repository, tag, described.Digest.String()); good || err != nil {
		return err
	}
	if good, err := seen.referring(ctx, repository, described, manifest); good || err != nil {
		return err
	}
	if len(seen.flaws) == 0 {
		return want.Unsigned("neither at the tag "+tag+" nor among the manifest's referrers", "sign it with `cosign sign`")
	}
	found := message.List(slices.Compact(slices.Sorted(slices.Values(seen.flaws))), "; ", maxFlaws)
	return want.Refuse(failure.SignatureInvalid, fmt.Sprintf("none of its signatures counts, of which the newest %d are looked at: %s", maxSignatures, found), "have it signed by that")
}

// signatures are those that were looked at, and don't count.
type signatures struct {
	want  policy.Policy
	flaws []string
}

// counts notes why a signature doesn't; an error that isn't about the signature
// ends the search.
func (s *signatures) counts(err error) (bool, error) {
	if flaw, ok := errors.AsType[*failure.Error](err); ok && flaw.Reason == failure.SignatureInvalid {
		s.flaws = append(s.flaws, flaw.Error())
		return false, nil
	}
	for _, incomplete := range []error{errdef.ErrNotFound, orascontent.ErrMismatchedDigest, orascontent.ErrTrailingData, errdef.ErrInvalidDigest, orascontent.ErrInvalidDescriptorSize, errUnreadable} {
		if errors.Is(err, incomplete) {
			s.flaws = append(s.flaws, "the registry doesn't have all of it")
			return false, nil
		}
	}
	return err == nil, err
}

// tagged looks at the layers below the tag that cosign makes of the digest.
func (s *signatures) tagged(ctx context.Context, repository *orasremote.Repository, tag, digest string) (bool, error) {
	_, data, err := readManifest(ctx, repository, tag)
	if errors.Is(err, errdef.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return s.counts(err)
	}
	manifest, err := layout.Parse(data)
	if err != nil {
		return s.counts(errUnreadable)
	}
	layers := slices.DeleteFunc(manifest.Layers, func(layer ocispec.Descriptor) bool { return layer.MediaType != signatureLayer })
	slices.Reverse(layers) // cosign puts new ones at the end
	return s.any(layers, func(layer ocispec.Descriptor) error {
		payload, err := fetchPart(ctx, repository.Blobs(), layer, maxPayload)
		if err != nil {
			return err
		}
		return s.want.Cosign.VerifySignature(digest, verify.Signature{Payload: payload, Annotations: layer.Annotations})
	})
}

// any looks for one that counts among the first.
func (s *signatures) any(of []ocispec.Descriptor, verify func(ocispec.Descriptor) error) (bool, error) {
	for _, one := range of[:min(len(of), maxSignatures)] {
		if good, err := s.counts(verify(one)); good || err != nil {
			return good, err
		}
	}
	return false, nil
}

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

// unknownToIt reports whether a registry may answer so because it doesn't know what it is
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
