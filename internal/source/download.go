// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// fetch is called by one flight for each reference; see [Sources.fly], which is
// patient, too. What one reference downloads is there for the others that go to the
// same host for it: these only have to show that they may have it.
func (r *remote) fetch(ctx context.Context, ref reference.Reference, digest string) (artifact.Content, error) {
	if got, found := r.kept(ref, digest); found && (r.granted(ctx, ref, digest) || r.confirms(ctx, ref, digest)) {
		return got, nil
	}
	result, err, _ := r.downloads.Do(digest+" at "+ref.Base().String(), func() (any, error) {
		got, err := r.download(context.WithoutCancel(ctx), ref, digest)
		return landing{got, ref.String()}, err
	})
	landed := result.(landing)
	switch {
	case landed.by == ref.String():
		return landed.Content, err
	case err == nil && r.confirms(ctx, ref, digest):
		return landed.Content, nil
	}
	// What went wrong for others, with other credentials, says nothing of this reference.
	return r.download(ctx, ref, digest)
}

// landing is what a download came to, and whose it was.
type landing struct {
	artifact.Content
	by string
}

// download asks for the archive, and keeps it.
func (r *remote) download(ctx context.Context, ref reference.Reference, digest string) (artifact.Content, error) {
	question := digest + " from " + ref.String()
	if known, found := r.recall(ctx, question, ref); found {
		return artifact.Content{}, known.error()
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	ctx, reading := r.room.Enter(ctx)
	defer reading.Leave(ctx)
	var got artifact.Content
	failed := r.ask(ctx, question, ref, func(ctx context.Context, at place.Place, as *guest.Guest) (err error) {
		got, err = at.Fetch(ctx, as, digest)
		return err
	})
	switch {
	case failed.err == nil && got.Digest() == digest:
		countBytes(ref, got)
		r.tallies.give(ref, got)
		r.keep(digest, got)
		r.grants.add(digest, got.From)
	case failed.err != nil && failed.err.Reason == failure.ArtifactChanged:
		r.answers.Remove(ref.DigestQuestion()) // for those who ask from now on
	}
	return got, failed.error()
}

// granted tells whether the reference got the archive before.
func (r *remote) granted(ctx context.Context, ref reference.Reference, digest string) bool {
	return r.grants.has(digest, r.title(ctx, ref))
}

// confirms asks the reference's source if it may have the archive, which is at hand.
// If that can't be told, for whatever reason, it has to be downloaded: that shows it.
func (r *remote) confirms(ctx context.Context, ref reference.Reference, digest string) bool {
	if _, failed := r.recall(ctx, digest+" from "+ref.String(), ref); failed {
		return false
	}
	confirmed := false
	err := r.visit(ctx, ref, func(ctx context.Context, at place.Place, as *guest.Guest) (err error) {
		confirmed, err = at.Probe(ctx, as, digest, func(from place.Site) bool { return r.grants.has(digest, from.Title()) })
		return err
	})
	return err == nil && confirmed
}
