// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/lru"
	"github.com/cluster-chandler/chandler/internal/source/outcome"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// rejections are the answers to questions for a digest that nobody can use. Whoever is told to
// mend one publishes something else at the same place: so the question is asked again, after
// times that grow.
type rejections struct {
	last    *lru.Cache[string, rejection] // by question
	refused *lru.Cache[string, bool]      // by question and digest
}

// rejection is the last answer to a question that was rejected.
type rejection struct {
	digest string            // "" since there is another answer
	again  time.Time         // when to ask again
	tries  int               // in a row, of whatever digests
	told   map[string]func() // wakes those who were told
}

// resolved notes the answer to a question, and wakes those who were told of another one.
func (r *rejections) resolved(key, digest string, now time.Time) {
	if _, found := r.last.Get(key); !found {
		return
	}
	var told map[string]func()
	r.last.Change(key, func(last *rejection) {
		switch {
		case last.digest != digest:
			told = last.told
			last.digest, last.told = "", nil
		case !now.Before(last.again):
			last.again = now.Add(failure.Backoff(failure.ArtifactRefused, last.tries))
			last.tries++
		}
	})
	wakeAll(told)
}

// due returns how old the answer may be: zero if the last one wasn't rejected, or if it is too
// early to ask again.
func (r *rejections) due(key string, now time.Time) time.Time {
	if last, found := r.last.Get(key); found && last.digest != "" && !now.Before(last.again) {
		return last.again
	}
	return time.Time{}
}

// forget forgets a rejection, and wakes those who were told of it.
func (r *rejections) forget(key string) {
	last, _ := r.last.Get(key)
	r.last.Remove(key)
	wakeAll(last.told)
}

func wakeAll(told map[string]func()) {
	for _, wake := range told {
		wake()
	}
}

// Reject notes that the caller can't use what the reference was resolved to. The source is
// asked again which content it is, after times that grow, unless the reference itself names
// the digest. Reject returns when; 0 for never.
func (s *Sources) Reject(ctx context.Context, ref reference.Reference, digest string) time.Duration {
	if !mayMeanAnother(ref, digest) {
		return 0
	}
	key := s.digestQuestion(ctx, ref).Key
	s.rejections.refused.Put(key+" "+digest, true)
	if now, err := s.Resolve(ctx, ref); err != nil || now != digest { // the caller may have it from elsewhere
		return time.Second
	}
	now := s.Clock.Now()
	last := s.rejections.last.Change(key, func(last *rejection) {
		if last.digest != digest {
			*last = rejection{digest: digest, again: now.Add(failure.Backoff(failure.ArtifactRefused, last.tries)), tries: last.tries + 1, told: map[string]func(){}}
		}
		if name, wake := outcome.OnWake(ctx); wake != nil {
			last.told[name] = wake
		}
	})
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
	if refused, _ := s.rejections.refused.Get(s.digestQuestion(ctx, ref).Key + " " + digest); refused {
		if now, err := s.Resolve(ctx, ref); err == nil {
			return now
		}
	}
	return digest
}

// Reconsider has the source asked at once which content the reference means, if that was
// rejected: somebody says that it was mended. Whoever was told of the rejection is woken.
func (s *Sources) Reconsider(ctx context.Context, ref reference.Reference) {
	if !ref.Remote() {
		return
	}
	key := s.digestQuestion(ctx, ref).Key
	if last, found := s.rejections.last.Get(key); found && last.digest != "" {
		s.digests.Forget(key)
		s.rejections.forget(key)
	}
}

// accept notes that the content can be used: all of it was read.
func (s *Sources) accept(ctx context.Context, ref reference.Reference, digest string) {
	if !mayMeanAnother(ref, digest) {
		return
	}
	key := s.digestQuestion(ctx, ref).Key
	s.rejections.refused.Remove(key + " " + digest)
	if last, found := s.rejections.last.Get(key); found && (last.digest == digest || last.digest == "") {
		s.rejections.forget(key)
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
