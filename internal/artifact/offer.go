// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// Offer is content that a host has under a name, of which it may say the digest.
type Offer struct {
	// What it is called in messages, as "the archive".
	What string
	// Digest as the host says it; "" if it doesn't: then the content has to be read.
	Digest string
	// Field of the reference with the digest that is wanted, and whether the object names one.
	Field string
	Named bool
	// Get reads the content.
	Get func(ctx context.Context) (Content, error)
}

// Resolve returns the digest, and the content if that had to be read.
func (o Offer) Resolve(ctx context.Context) (string, Content, error) {
	if o.Digest != "" {
		return o.Digest, Content{}, nil
	}
	got, err := o.Get(ctx)
	return got.Digest(), got, err
}

// Fetch reads the content, which has to have the digest.
func (o Offer) Fetch(ctx context.Context, digest string) (Content, error) {
	is := o.Digest
	if is == "" || is == digest {
		got, err := o.Get(ctx)
		if is = got.Digest(); err != nil || is == digest {
			return got, err
		}
		if o.Digest != "" {
			return Content{}, failure.New(failure.DigestMismatch, "%s isn't the one that the source names by its digest: it is damaged, or was tampered with; have it put there again", o.What)
		}
	}
	if o.Named {
		return Content{}, failure.New(failure.DigestMismatch, "%s of this version is %s, not %s; correct one of %s and version. "+failure.IfFollowed, o.What, is, o.Field, o.Field)
	}
	return Content{}, failure.Gone(digest, "set "+o.Field+" to that of the content that is to be installed, or publish it under another version")
}
