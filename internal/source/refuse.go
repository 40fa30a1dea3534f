// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/flight"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Reconsider has the source asked at once which content the reference means, if that was
// refused: somebody says that it was mended. Whoever was told of the refusal is woken.
func (s *Sources) Reconsider(ref reference.Reference) { s.remote.refused.Reconsider(ref.String()) }

// Refuse notes that the caller can't use what the reference was resolved to: unless the
// reference itself names the digest, the source is asked again which content it is, after
// times that grow. It returns when; 0 for never.
func (s *Sources) Refuse(ctx context.Context, ref reference.Reference, digest string) time.Duration {
	if !mayMean(ref, digest) {
		return 0
	}
	to := s.remote.route(ctx, ref.DigestQuestion(), ref)
	left := s.remote.refused.Note(ctx, to, ref.String(), digest)
	if left == 0 { // the caller had the digest from elsewhere
		_, _ = s.Resolve(ctx, ref)
		left = s.remote.refused.Note(ctx, to, ref.String(), digest)
	}
	if left == 0 { // it is being asked
		return flight.ComeBack(ctx)
	}
	return left
}

// mayMean says whether the reference was resolved to the digest, and may mean another one
// when its source is asked again.
func mayMean(r reference.Reference, digest string) bool {
	named, _ := r.DigestField()
	return r.Remote() && r.Bundle == nil && named == "" && r.PinnedDigest() == "" && digest != ""
}

// Kept is what the reference means for a caller who knows the digest that it was resolved
// to before: that one, unless it was refused and the source has another by now.
func (s *Sources) Kept(ctx context.Context, ref reference.Reference, digest string) string {
	if !mayMean(ref, digest) || !s.remote.refused.Has(ref.DigestQuestion(), digest) {
		return digest
	}
	if now, err := s.Resolve(ctx, ref); err == nil {
		return now
	}
	return digest
}

// refuse adds to an error about the content when the source is asked again.
func (s *Sources) refuse(ctx context.Context, ref reference.Reference, digest string, err error) error {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || !failed.OfContent() {
		return err
	}
	if failed.Reason == failure.DigestMismatch && ref.Chart.Verify == nil {
		return err // it was changed on the way: asked for by its tag, another one would come in its place
	}
	left := s.Refuse(ctx, ref, digest)
	if left == 0 || failed.RetryAfter > 0 && failed.RetryAfter < left {
		return err
	}
	again := *failed
	again.RetryAfter = left
	return &again
}
