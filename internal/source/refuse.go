// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Content that a caller can't use is an answer of its source that was refused. Whoever is told to fix it
// publishes something else at the same place. So the memory of digests asks the source again, after times
// that grow, and gives the refused digest until there is another one.

// refusedKey is the key of a digest that was refused as the answer to a question.
func refusedKey(question, digest string) string { return question + " " + digest }

// mayMeanAnother reports whether the reference was resolved to the digest, and may mean
// another one when its source is asked again.
func mayMeanAnother(r reference.Reference, digest string) bool {
	named, _ := r.DigestField()
	return r.Remote() && r.Bundle == nil && named == "" && r.PinnedDigest() == "" && digest != ""
}

// Refused notes that a caller can't use the content with the digest, which the reference was resolved to. It
// returns the caller's error, with the time until the source is asked again. An error about something else
// stays as it is, and so does the error of a reference that names the digest itself.
func (s *Sources) Refused(ctx context.Context, ref reference.Reference, digest string, err error) error {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || failure.IsReason(failed.Reason) && !failed.OfContent() || !mayMeanAnother(ref, digest) {
		return err
	}
	if failed.Reason == failure.DigestMismatch && ref.Chart.Verify == nil {
		return err // it was changed on the way: asked for by its tag, another one would come in its place
	}
	question := s.digestQuestion(ctx, ref).Key
	s.refused.Put(budget.Tenant{Namespace: ref.Namespace}, refusedKey(question, digest), true)
	left := time.Second // the caller has the digest from elsewhere
	if now, err := s.Resolve(ctx, ref); err == nil && now == digest {
		left = max(s.digests.Refuse(ctx, question), left)
	}
	if failed.Reason == failure.ArtifactChanged { // what changes all the time mustn't be asked for all the time
		left = cmp.Or(failed.RetryAfter, left)
	}
	if failed.RetryAfter == 0 || left < failed.RetryAfter {
		failed.RetryAfter = left
	}
	return err
}

// Current returns the digest, unless its content was refused and the source now has another one.
func (s *Sources) Current(ctx context.Context, ref reference.Reference, digest string) string {
	if !mayMeanAnother(ref, digest) {
		return digest
	}
	if _, refused := s.refused.Get(refusedKey(s.digestQuestion(ctx, ref).Key, digest)); refused {
		if now, err := s.Resolve(ctx, ref); err == nil {
			return now
		}
	}
	return digest
}

// Reconsider has the source asked at once which content the reference means, if that was
// refused: somebody says that it was fixed. Whoever was told of the refusal is woken.
func (s *Sources) Reconsider(ctx context.Context, ref reference.Reference) {
	if ref.Remote() {
		s.digests.Reconsider(s.digestQuestion(ctx, ref).Key)
	}
}
