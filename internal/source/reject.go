// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Reject notes that the caller can't use what the reference was resolved to: unless the
// reference itself names the digest, the source is asked again which content it is, after
// times that grow. It returns when; 0 for never.
func (s *Sources) Reject(ctx context.Context, ref reference.Reference, digest string) time.Duration {
	if !mayMeanAnother(ref, digest) {
		return 0
	}
	key := s.digestQuestion(ctx, ref).Key
	if left := s.digests.Reject(ctx, key, digest); left > 0 {
		return left
	}
	if now, err := s.Resolve(ctx, ref); err != nil || now == digest { // the caller may have it from elsewhere
		return max(s.digests.Reject(ctx, key, digest), time.Second)
	}
	s.replaced.Put(key+" "+digest, true)
	return time.Second // there is another answer
}

// mayMeanAnother reports whether the reference was resolved to the digest, and may mean
// another one when its source is asked again.
func mayMeanAnother(r reference.Reference, digest string) bool {
	named, _ := r.DigestField()
	return r.Remote() && r.Bundle == nil && named == "" && r.PinnedDigest() == "" && digest != ""
}

// Current returns the digest, unless the content was rejected and the source now serves
// another one.
func (s *Sources) Current(ctx context.Context, ref reference.Reference, digest string) string {
	if !mayMeanAnother(ref, digest) {
		return digest
	}
	key := s.digestQuestion(ctx, ref).Key
	if replaced, _ := s.replaced.Get(key + " " + digest); !replaced && !s.digests.IsRejected(key, digest) {
		return digest
	}
	if now, err := s.Resolve(ctx, ref); err == nil {
		return now
	}
	return digest
}

// Reconsider has the source asked at once which content the reference means, if that was
// rejected: somebody says that it was mended. Whoever was told of the rejection is woken.
func (s *Sources) Reconsider(ctx context.Context, ref reference.Reference) {
	if ref.Remote() {
		s.digests.Reconsider(s.digestQuestion(ctx, ref).Key)
	}
}

// accept notes that the content can be used: all of it was read.
func (s *Sources) accept(ctx context.Context, ref reference.Reference, digest string) {
	if mayMeanAnother(ref, digest) {
		s.digests.Accept(s.digestQuestion(ctx, ref).Key, digest)
	}
}

// rejected adds to an error about the content when the source is asked again.
func (s *Sources) rejected(ctx context.Context, ref reference.Reference, digest string, err error) error {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || !failed.OfContent() {
		return err
	}
	if failed.Reason == failure.DigestMismatch && ref.Chart.Verify == nil {
		return err // it was changed on the way: asked for by its tag, another one would come in its place
	}
	left := s.Reject(ctx, ref, digest)
	if left == 0 || failed.RetryAfter > 0 && failed.RetryAfter < left {
		return err
	}
	if failed.Reason == failure.ArtifactChanged { // what changes all the time mustn't be asked for all the time
		left = max(left, failed.RetryAfter)
	}
	again := *failed
	again.RetryAfter = left
	return &again
}
