// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/outcome"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// rejection is what is known of a digest that nobody can use, as the answer to a question. Whoever
// is told to fix it publishes something else at the same place: so the question is asked again,
// after times that grow.
type rejection struct {
	again time.Time         // when to ask again; zero: only digests before this one were rejected
	tries int               // in a row, of whatever digests
	told  map[string]func() // wakes those who were told
}

func (r *rejection) isDue(now time.Time) bool { return !r.again.IsZero() && !now.Before(r.again) }

// postpone puts the next try off.
func (r *rejection) postpone(now time.Time) {
	r.again = now.Add(failure.Backoff(failure.ArtifactRefused, r.tries))
	r.tries++
}

func (r *rejection) wakeAll() {
	for _, wake := range r.told {
		wake()
	}
}

func rejectionKey(question, digest string) string { return question + " " + digest }

// notice notes which digest a question has now, and which one it had before. Callers that were told
// that the previous digest was rejected are woken.
func (s *Sources) notice(question, before, digest string) {
	previous, found := s.rejections.Get(rejectionKey(question, before))
	switch {
	case !found || previous.again.IsZero():
	case digest != before:
		s.rejections.Put(rejectionKey(question, before), rejection{again: previous.again, tries: previous.tries})
		s.rejections.Change(rejectionKey(question, digest), func(r *rejection) { r.tries = previous.tries })
		previous.wakeAll()
	case previous.isDue(s.Clock.Now()):
		s.rejections.Change(rejectionKey(question, digest), func(r *rejection) { r.postpone(s.Clock.Now()) })
	}
}

// Reject notes that the caller can't use what the reference was resolved to. The source is
// asked again which content it is, after times that grow, unless the reference itself names
// the digest. Reject returns when; 0 for never.
func (s *Sources) Reject(ctx context.Context, ref reference.Reference, digest string) time.Duration {
	if !mayMeanAnother(ref, digest) {
		return 0
	}
	is, err := s.Resolve(ctx, ref)
	now, current := s.Clock.Now(), err == nil && is == digest // else the caller has it from elsewhere
	last := s.rejections.Change(rejectionKey(s.digestQuestion(ctx, ref).Key, digest), func(r *rejection) {
		if r.again.IsZero() {
			r.postpone(now)
		}
		if name, wake := outcome.OnWake(ctx); wake != nil && current {
			told := map[string]func(){name: wake}
			maps.Copy(told, r.told)
			r.told = told
		}
	})
	if !current {
		return time.Second
	}
	return max(last.again.Sub(now), time.Second)
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
	if last, _ := s.rejections.Get(rejectionKey(s.digestQuestion(ctx, ref).Key, digest)); !last.again.IsZero() {
		if now, err := s.Resolve(ctx, ref); err == nil {
			return now
		}
	}
	return digest
}

// Reconsider has the source asked at once which content the reference means, if that was
// rejected: somebody says that it was fixed. Whoever was told of the rejection is woken.
func (s *Sources) Reconsider(ctx context.Context, ref reference.Reference) {
	if !ref.Remote() {
		return
	}
	question := s.digestQuestion(ctx, ref).Key
	digest, _ := s.digests.Peek(question)
	if last, found := s.rejections.Get(rejectionKey(question, digest)); found && !last.again.IsZero() {
		s.digests.Forget(question)
		s.rejections.Put(rejectionKey(question, digest), rejection{again: last.again}) // which is no answer any more
		last.wakeAll()
	}
}

// accept forgets that the content was rejected: all of it was read.
func (s *Sources) accept(ctx context.Context, ref reference.Reference, digest string) {
	if !mayMeanAnother(ref, digest) {
		return
	}
	key := rejectionKey(s.digestQuestion(ctx, ref).Key, digest)
	if last, found := s.rejections.Get(key); found {
		s.rejections.Remove(key)
		last.wakeAll()
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
	again := *failed
	again.RetryAfter = left
	if failed.Reason == failure.ArtifactChanged { // what changes all the time mustn't be asked for all the time
		again.RetryAfter = max(left, failed.RetryAfter)
	}
	return &again
}
