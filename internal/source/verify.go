// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"errors"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/flight"
	"github.com/cluster-chandler/chandler/internal/source/github"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/helm"
	"github.com/cluster-chandler/chandler/internal/source/lru"
	"github.com/cluster-chandler/chandler/internal/source/object"
	"github.com/cluster-chandler/chandler/internal/source/oci"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/policy"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/verify"
)

// verifier makes sure that content is signed by whom a reference trusts, before
// any of it is read. What it judges is a digest: whatever is taken after that, from
// wherever, has to have it.
//
// What was found good is remembered by the digest and the policy's own: however
// many clusters want it, it is verified once, and again when a key changes.
type verifier struct {
	remote   *remote
	trust    *policy.Reader
	required policy.Required
	good     *lru.Cache[string, struct{}]
}

func newVerifier(objects *object.Reader, from *remote, required policy.Required) *verifier {
	return &verifier{remote: from, trust: policy.NewReader(objects), required: required, good: lru.New[string](remembered, lru.One[struct{}])}
}

// verify passes the content with the digest, or says why the reference can't have it.
func (v *verifier) verify(ctx context.Context, ref reference.Reference, digest string) error {
	if err := v.verifyRequired(ctx, ref, digest); err != nil {
		return err
	}
	if ref.Chart.Verify == nil {
		return nil
	}
	if _, can := signedAt(ref, nil); !can {
		return policy.Fault(ref, "", "", errors.New("this kind of source has no signatures; use oci, helm or github, or take verify away"))
	}
	if ref.Chart.Verify.Cosign != nil && ref.Chart.OCI == nil {
		return policy.Fault(ref, ".cosign", "", errors.New("cosign is for oci; use provenance"))
	}
	want, err := v.trust.Of(ctx, ref)
	if err != nil {
		return err
	}
	return v.meet(ctx, ref, digest, want)
}

// verifyRequired passes what one of the instance's own keys signed, if these are required.
func (v *verifier) verifyRequired(ctx context.Context, ref reference.Reference, digest string) error {
	if !v.required.For(ref) {
		return nil
	}
	policies, err := v.required.Of(ref)
	if err != nil {
		return err
	}
	if len(policies) == 0 {
		return failure.New(failure.SignatureMissing, "the provider instance wants all to be signed by its own keys, and has none for this kind of source: charts of oci, helm and github can be signed, and all else of oci")
	}
	var first error
	for _, want := range policies {
		err := v.meet(ctx, ref, digest, want)
		if failed, ok := errors.AsType[*failure.Error](err); err == nil || !ok || failed.Reason != failure.SignatureMissing && failed.Reason != failure.SignatureInvalid {
			return err
		}
		first = cmp.Or(first, err)
	}
	return first
}

// meet passes what meets the policy.
func (v *verifier) meet(ctx context.Context, ref reference.Reference, digest string, want policy.Policy) error {
	want.Now = v.remote.clock.Now()
	name := digest + " for " + want.Digest
	if _, known := v.good.Get(name); known {
		return nil
	}
	question := "signature of " + name + " from " + ref.String()
	if known, found := v.remote.recall(ctx, question, ref); found {
		return known.error()
	}
	_, err := flight.Board(ctx, v.remote.flights, v.remote.route(ctx, question, ref), func(ctx context.Context) (answer, error) {
		if _, known := v.good.Get(name); known { // by a flight that just ended
			return answer{}, nil
		}
		ctx, cancel := context.WithTimeout(ctx, v.remote.timeout)
		defer cancel()
		failed := v.remote.ask(ctx, question, ref, func(ctx context.Context, at place.Place, as *guest.Guest) error {
			from, _ := signedAt(ref, at)
			return from.Verify(ctx, as, digest, want)
		})
		v.settle(name, question, ref, failed)
		return failed, failed.error()
	})
	return err
}

// settle remembers what is good, and forgets what the source no longer has.
func (v *verifier) settle(name, question string, ref reference.Reference, failed answer) {
	switch {
	case failed.err == nil:
		v.good.Put(name, struct{}{})
		v.remote.answers.Remove(question) // a failure before
	case failed.err.Reason == failure.ArtifactChanged:
		v.remote.answers.Remove(ref.DigestQuestion()) // for those who ask from now on
	}
}

// signedAt is the place, if the content there can be signed. Without a place it
// tells what can be.
func signedAt(r reference.Reference, at place.Place) (place.Signed, bool) {
	if at == nil && r.Remote() {
		at = places{}.of(r)
	}
	from, can := at.(place.Signed)
	return from, can
}

var (
	_ place.Signed = oci.Artifact{}
	_ place.Signed = helm.Chart{}
	_ place.Signed = github.Release{}
	_ error        = (*verify.Flaw)(nil)
)
