// SPDX-License-Identifier: Apache-2.0

// Package web gets archives from any address.
package web

import (
	"context"
	"net/url"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Archive is an archive at an address. The object says which one it has to be.
type Archive struct{ *addonsv1.HTTPSource }

// New is the place of an archive at an address.
func New(r reference.Reference) Archive { return Archive{r.Chart.HTTP} }

// Resolve knows the digest.
func (a Archive) Resolve(context.Context, *guest.Guest) (string, error) { return a.Digest, nil }

// Fetch gets what is at the address.
func (a Archive) Fetch(ctx context.Context, as *guest.Guest, digest string) (artifact.Content, error) {
	at, err := a.at()
	if err != nil {
		return artifact.Content{}, err
	}
	sent, err := as.Archive(ctx, at)
	if err != nil {
		return artifact.Content{}, err
	}
	if sent == nil {
		return artifact.Content{}, failure.NotPublished("%s has nothing at this address, or doesn't show it to these credentials; put the %s there, or correct http.url", at.Host, as.Ref.Kind.Packing())
	}
	archive, kind := sent.Data, as.Ref.Kind
	got := artifact.Content{Archive: archive, From: place.Site{URL: at.String(), Bytes: int64(len(archive))}.Title()}
	// What the host calls it, as with Content-Type, says nothing.
	switch {
	case got.Digest() == digest:
		return got, nil
	case kind.Unfit(archive) != "":
		return artifact.Content{}, sent.OrPage(digest, failure.New(failure.DigestMismatch, "what %s sends isn't the %s of http.digest, nor any other: %s; correct http.digest or url", at.Host, kind.Packing(), kind.Unfit(archive)))
	default: // whoever was told the digest could read what only this provider reaches
		return artifact.Content{}, failure.New(failure.DigestMismatch, "the %s isn't the one of http.digest; compare that with what sha256sum prints, and correct http.digest or url", kind.Packing())
	}
}

// Probe asks how large it is.
func (a Archive) Probe(ctx context.Context, as *guest.Guest, _ string, among func(place.Site) bool) (bool, error) {
	at, err := a.at()
	if err != nil {
		return false, err
	}
	size, err := as.Size(ctx, at)
	return err == nil && among(place.Site{URL: at.String(), Bytes: size}), err
}

func (a Archive) at() (*url.URL, error) {
	at, err := url.Parse(a.URL)
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "http.url is no URL; correct it")
	}
	return at, nil
}
