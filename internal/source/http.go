// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"net/http"
	"net/url"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/room"
)

// httpArchive is an archive at an address. The object says which one it has to be.
type httpArchive struct{ *addonsv1.HTTPSource }

func (a httpArchive) resolve(context.Context, *guest) (string, error) { return a.Digest, nil }

func (a httpArchive) fetch(ctx context.Context, as *guest, digest string) (artifact.Content, error) {
	at, err := a.at()
	if err != nil {
		return artifact.Content{}, err
	}
	archive, err := as.archive(ctx, at)
	if err != nil {
		return artifact.Content{}, err
	}
	if archive == nil {
		return artifact.Content{}, notPublished("%s has nothing at this address, or doesn't show it to these credentials; put the %s there, or correct http.url", at.Host, as.ref.Kind.Packing())
	}
	got, kind := artifact.Content{Archive: archive, From: site{at.String(), int64(len(archive))}.title()}, as.ref.Kind
	// What the host calls it, as with Content-Type, says nothing.
	switch is := got.Digest(); {
	case is == digest:
		return got, nil
	case kind.Unfit(archive) != "":
		return artifact.Content{}, failure.New(failure.DigestMismatch, "what %s sends isn't the %s of http.digest, nor any other: %s", at.Host, kind.Packing(), kind.Unfit(archive))
	default:
		return artifact.Content{}, failure.New(failure.DigestMismatch, "the %s isn't the one of http.digest: it is %s", kind.Packing(), is)
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
		return nil, failure.New(failure.ArtifactInvalid, "http.url is no URL")
	}
	return at, nil
}

// archive gets an archive; nil if there is none.
func (g *guest) archive(ctx context.Context, at *url.URL) ([]byte, error) {
	// Transport compression is refused: it would make other bytes of the same archive.
	response, err := g.get(ctx, at, http.Header{"Accept-Encoding": {"identity"}})
	if err != nil {
		return nil, err
	}
	defer release(response.Body)
	if response.StatusCode != http.StatusOK {
		return nil, nil
	}
	if response.ContentLength > g.limits.ArchiveBytes {
		return nil, failure.TooLarge("the archive", g.limits.ArchiveBytes)
	}
	return room.Read(ctx, response.Body, response.ContentLength, "the archive", g.limits.ArchiveBytes)
}
