// SPDX-License-Identifier: Apache-2.0

// Package web gets archives from any address.
package web

import (
	"context"
	"net/url"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Archive is an archive at an address. The object says which one it has to be.
type Archive struct{ *addonsv1.HTTPSource }

// New returns what the reference means at an address.
func New(r reference.Reference) Archive { return Archive{r.Chart.HTTP} }

// Resolve knows the digest.
func (a Archive) Resolve(context.Context, *auth.Client) (string, artifact.Content, error) {
	return a.Digest, artifact.Content{}, nil
}

// Fetch gets what is at the address.
func (a Archive) Fetch(ctx context.Context, c *auth.Client, digest string) (artifact.Content, error) {
	at, err := url.Parse(a.URL)
	if err != nil {
		return artifact.Content{}, failure.New(failure.ArtifactInvalid, "http.url is no URL; correct it")
	}
	data, err := c.File(ctx, at, "", "the archive", c.Limits.ArchiveBytes)
	if err != nil {
		return artifact.Content{}, err
	}
	kind := c.Ref.Kind
	if data == nil {
		return artifact.Content{}, failure.NotPublished("%s has nothing at this address, or doesn't show it to these credentials; put the %s there, or correct http.url", at.Host, kind.Packing())
	}
	got := artifact.Content{Archive: data}
	if got.Digest() == digest {
		return got, nil
	}
	// The name that the host gives it, as with Content-Type, says nothing. And its own digest isn't
	// told: whoever learns the digest could read content that only this provider reaches.
	unfit := kind.Unfit(data)
	if unfit != "" {
		unfit = " (" + unfit + ")"
	}
	return artifact.Content{}, failure.New(failure.DigestMismatch, "what %s sends isn't the %s of http.digest%s; compare that with what sha256sum prints, and correct http.digest or url", at.Host, kind.Packing(), unfit)
}
