// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/source/answers"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/object"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Resolve returns the digest of the content that the reference means now. An exact version
// on another host is looked up once: what it was resolved to is remembered, for as long as
// the process runs. Errors are of type [*failure.Error], but for that of ctx.
func (s *Sources) Resolve(ctx context.Context, ref reference.Reference) (digest string, err error) {
	if digest := ref.PinnedDigest(); digest != "" {
		return digest, nil
	}
	digest, err = s.resolve(ctx, ref)
	if want := ref.Chart.Digest; err == nil && want != "" && want != digest {
		err = failure.New(failure.DigestMismatch, "its digest is %s, not %s; put the right content there, or correct %s.digest", digest, want, ref.Kind.Field())
	}
	if err != nil {
		return "", conclude(ctx, ref, err)
	}
	return digest, nil
}

func (s *Sources) resolve(ctx context.Context, ref reference.Reference) (string, error) {
	switch {
	case ref.Bundle != nil:
		return s.resolveInBundle(ctx, ref)
	case ref.Remote():
		return s.resolveRemote(ctx, ref)
	case ref.Chart.Path != "":
		return counted(s.Clock, ref, func() (string, error) { return s.local.Resolve(ref.Chart.Path, ref.Kind) })
	}
	return counted(s.Clock, ref, func() (string, error) { return resolveObject(ctx, s.objects, s.digests, ref) })
}

func (s *Sources) resolveRemote(ctx context.Context, ref reference.Reference) (string, error) {
	if digest, _ := ref.DigestField(); digest != "" && !ref.Traits().Registry { // where it is the manifest's
		return digest, nil
	}
	q, from := s.digestQuestion(ctx, ref), s.backendOf(ref)
	q.NotBefore = s.digests.Due(q.Key)
	digest, err := ask(ctx, s, s.digests, q, ref, func(ctx context.Context, c *auth.Client) (string, error) {
		digest, got, err := from.Resolve(ctx, c)
		if err == nil && got.Bytes() > 0 {
			_, scope := s.access.Identity(ctx, ref)
			disk{s.Store, s.Limits}.put(ref, scope, got)
		}
		return digest, err
	})
	if err != nil && !q.NotBefore.IsZero() {
		if before, known := s.digests.Peek(q.Key); known {
			return before, nil // which was refused, and there is no other yet
		}
	}
	return digest, err
}

func (s *Sources) digestQuestion(ctx context.Context, ref reference.Reference) answers.Question {
	return s.question(ctx, digestQuestion(ref), ref)
}

// digestQuestion returns the name of the question that resolves the reference. A reference that
// wants another signature has a question of its own: content that it refuses may be good for
// others.
func digestQuestion(r reference.Reference) string {
	question := "digest of " + r.String()
	if r.Chart.Verify == nil {
		return question
	}
	policy, err := json.Marshal(r.Chart.Verify)
	if err != nil { // it has nothing that isn't plain
		return question
	}
	return question + " for " + r.Namespace + ", verified by " + artifact.DigestOf(policy) // which may be long, while many questions are remembered
}

// question names what is asked of the reference's host. Another credential makes another
// question: what came of the previous says nothing.
func (s *Sources) question(ctx context.Context, what string, ref reference.Reference) answers.Question {
	identity, _ := s.access.Identity(ctx, ref)
	return answers.Question{Key: what + " as " + identity}
}

// resolveObject returns the digest of the content of a ConfigMap or Secret. The content of a
// version of an object (UID and resourceVersion) never changes, so it is read once. The metadata
// cache may lag behind: then the object is read once too often, never once too rarely.
func resolveObject(ctx context.Context, objects *object.Reader, digests *answers.Memory[string], ref reference.Reference) (string, error) {
	read := func(ctx context.Context) (string, error) {
		got, err := readObject(ctx, objects, ref)
		return got.Digest(), err
	}
	key := ref.Object()
	version := objects.Version(ctx, key)
	if version == "" {
		return read(ctx)
	}
	return digests.Ask(ctx, answers.Question{Key: key.String() + ref.Kind.Suffix() + " at " + version}, read)
}

// readObject reads what a ConfigMap or Secret holds.
func readObject(ctx context.Context, objects *object.Reader, ref reference.Reference) (artifact.Content, error) {
	key := ref.Object()
	read, err := objects.Read(ctx, key)
	if err == nil && read.Text && ref.Kind != artifact.KindManifests {
		err = failure.New(failure.ArtifactInvalid, "the key is in data, which is text and can't hold an archive; put it in binaryData, as "+
			"`kubectl create configmap %s --from-file=%s` does", key.Name, key.Key)
	}
	return artifact.Content{Archive: read.Data}, err
}

// conclude locates an error, and leaves that of an ended context alone: it isn't the source's.
func conclude(ctx context.Context, ref reference.Reference, err error) error {
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return err
	}
	located := ref.Locate(err)
	if failed, ok := errors.AsType[*failure.Error](located); ok && failed.Reason == failure.SourceUnauthorized && ref.SecretRef() == nil {
		failed.RetryAfter = min(failed.RetryAfter, retry.Credentials)
	}
	return located
}
