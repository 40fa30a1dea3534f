// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"net/url"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// httpArchive is an archive at an address. The object says which one it has to be.
type httpArchive struct{ *addonsv1.HTTPSource }

func (a httpArchive) resolve(context.Context, *guest) (string, error) { return a.Digest, nil }

func (a httpArchive) fetch(ctx context.Context, as *guest, digest string) (artifact.Content, error) {
	at, err := a.at()
	if err != nil {
		return artifact.Content{}, err
	}
	sent, err := as.archive(ctx, at)
	if err != nil {
		return artifact.Content{}, err
	}
	if sent == nil {
		return artifact.Content{}, notPublished("%s has nothing at this address, or doesn't show it to these credentials; put the %s there, or correct http.url", at.Host, as.ref.Kind.Packing())
	}
	archive, kind := sent.data, as.ref.Kind
	got := artifact.Content{Archive: archive, From: site{at.String(), int64(len(archive))}.title()}
	// What the host calls it, as with Content-Type, says nothing.
	switch is := got.Digest(); {
	case is == digest:
		return got, nil
	case kind.Unfit(archive) != "":
		return artifact.Content{}, sent.orPage(digest, failure.New(failure.DigestMismatch, "what %s sends isn't the %s of http.digest, nor any other: %s; correct http.digest or url", at.Host, kind.Packing(), kind.Unfit(archive)))
	default:
		return artifact.Content{}, failure.New(failure.DigestMismatch, "the %s isn't the one of http.digest: it is %s; correct http.digest or url", kind.Packing(), is)
	}
}

func (a httpArchive) probe(ctx context.Context, as *guest, _ string, among func(site) bool) (bool, error) {
	at, err := a.at()
	if err != nil {
		return false, err
	}
	size, err := as.size(ctx, at)
	return err == nil && among(site{at.String(), size}), err
}

func (a httpArchive) at() (*url.URL, error) {
	at, err := url.Parse(a.URL)
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "http.url is no URL; correct it")
	}
	return at, nil
}
