// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/bundle"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// expand reads the stack's bundle, which is the pinned one if the stack follows its
// versions; nil if it has none. What the newest revision has of it stays while neither
// the spec nor the bundle changes. An exact version elsewhere isn't looked up again: a
// source that is down, or moved its tag, changes nothing.
func (r *Reconciler) expand(ctx context.Context, s *addonsv1.AddonStack, f *following, newest *appsv1.ControllerRevision) (*expansion, error) {
	if s.Spec.Source == nil {
		return nil, nil
	}
	kept, err := keptSpec(s, newest)
	if err != nil {
		return nil, err
	}
	e, err := r.expandPinned(ctx, s, f.pins, kept, newest)
	if failed := bundleFailure(f.pins, err); failed != nil && f.stepBack(failed) {
		return r.expandPinned(ctx, s, f.pins, kept, newest)
	}
	return e, err
}

func (r *Reconciler) expandPinned(ctx context.Context, s *addonsv1.AddonStack, pins stack.Pins, kept *addonsv1.AddonStackSpec, newest *appsv1.ControllerRevision) (*expansion, error) {
	from := pinnedSource(s, pins)
	digest, err := r.digestOf(ctx, s.Namespace, from, kept)
	if err != nil {
		return nil, err
	}
	if kept.Source != nil && kept.Source.Digest == digest && stack.Generation(newest) == s.Generation {
		if addons, complete := keptAddons(s.Spec.Addons, kept.Addons); complete {
			e := &expansion{digest: digest, addons: addons}
			from.Digest = digest
			if lacksNotes(s) {
				if expanded, err := r.open(ctx, s, from); err == nil { // a source that is down changes nothing
					e.notes = expanded.Notes
				}
			}
			return e, nil
		}
	}
	from.Digest = digest
	expanded, err := r.open(ctx, s, from)
	if err != nil {
		unpinned := pinnedSource(s, pins)
		if err = r.refuse(ctx, s, unpinned, digest, err); refusedFor(err) == 0 {
			return nil, err
		}
		if from.Digest = r.Sources.Current(ctx, reference.BundleOf(s.Namespace, unpinned), digest); from.Digest == digest {
			return nil, err
		}
		digest = from.Digest // of what was published anew
		if expanded, err = r.open(ctx, s, from); err != nil {
			return nil, r.refuse(ctx, s, unpinned, digest, err)
		}
	}
	if kept.Source == nil || kept.Source.Digest != digest {
		r.tell(s, expanded.Notes)
	}
	return &expansion{digest: digest, addons: expanded.Addons, notes: expanded.Notes}, nil
}

// open reads a bundle, and makes the stack's add-ons of it.
func (r *Reconciler) open(ctx context.Context, s *addonsv1.AddonStack, from *addonsv1.BundleSource) (*bundle.Expansion, error) {
	opened, err := r.Sources.OpenBundle(ctx, s.Namespace, from)
	if err != nil {
		return nil, err
	}
	return bundle.Expand(opened, &s.Spec)
}

// refused is the error of a bundle that may be published anew.
type refused struct {
	error
	again time.Duration // until the source is asked whether it was
}

func (e *refused) Unwrap() error { return e.error }

// refuse notes that what the source was resolved to can't be used, for whatever is in it.
// If the source names no digest, it is asked again what it has.
func (r *Reconciler) refuse(ctx context.Context, s *addonsv1.AddonStack, from *addonsv1.BundleSource, digest string, err error) error {
	_, invalid := errors.AsType[*bundle.Error](err)
	if failed, ok := errors.AsType[*failure.Error](err); !invalid && (!ok || !failed.OfContent()) {
		return err
	}
	if again := r.Sources.Reject(ctx, reference.BundleOf(s.Namespace, from), digest); again > 0 {
		return &refused{err, again}
	}
	return err
}

// refusedFor is how long it takes until a bundle is asked for again that was refused.
func refusedFor(err error) time.Duration {
	if again, ok := errors.AsType[*refused](err); ok {
		return again.again
	}
	return 0
}

// tryBundle says whether a version of the bundle could be the stack's: one that can't
// be would make the stack invalid. Errors are of type *failure.Error, but for those of
// a request that goes on.
func (r *Reconciler) tryBundle(ctx context.Context, s *addonsv1.AddonStack, pin stack.Pin) error {
	pins := stack.Pins{addonsv1.FollowedSource: pin}
	_, err := r.open(ctx, s, pinnedSource(s, pins))
	if failed := bundleFailure(pins, err); failed != nil {
		return failed
	}
	return err
}

// bundleFailure is the error as one of the source; nil if it is another one.
func bundleFailure(pins stack.Pins, err error) *failure.Error {
	if failed, ok := errors.AsType[*failure.Error](err); ok {
		whole := *failed
		if isOfPart(err, failed) {
			whole.Field, whole.Subject, whole.Err = addonsv1.FollowedSource, pins[addonsv1.FollowedSource].Version, err
		}
		return &whole
	}
	if invalid, ok := errors.AsType[*bundle.Error](err); ok {
		return &failure.Error{Reason: failure.ArtifactInvalid, Field: addonsv1.FollowedSource, Subject: pins[addonsv1.FollowedSource].Version, Err: invalid}
	}
	return nil
}

// pinnedSource is the stack's bundle in the version that it is pinned to.
func pinnedSource(s *addonsv1.AddonStack, pins stack.Pins) *addonsv1.BundleSource {
	return pins.Into(&addonsv1.AddonStackSpec{Source: s.Spec.Source}).Source
}

// keptSpec is that of the newest revision, empty if there is none.
func keptSpec(s *addonsv1.AddonStack, newest *appsv1.ControllerRevision) (*addonsv1.AddonStackSpec, error) {
	if newest == nil || !metav1.IsControlledBy(newest, s) {
		return &addonsv1.AddonStackSpec{}, nil
	}
	return stack.SpecOf(newest)
}

// digestOf a bundle now.
func (r *Reconciler) digestOf(ctx context.Context, namespace string, wanted *addonsv1.BundleSource, kept *addonsv1.AddonStackSpec) (string, error) {
	from := *wanted
	remote := from.OCI != nil || from.HTTP != nil || from.GitHub != nil
	if remote && kept.Source != nil && kept.Source.Digest != "" && sameSource(&from, kept.Source) {
		return kept.Source.Digest, nil
	}
	said := from.Digest
	from.Digest = "" // the bundle itself has to be asked for: whoever knows a digest may not be let in
	digest, err := r.Sources.Resolve(ctx, reference.BundleOf(namespace, &from))
	if err == nil && said != "" && said != digest {
		err = &bundle.Error{Err: fmt.Errorf("spec.source.digest: the bundle has digest %s, not %s; correct it, or the bundle", digest, said)}
	}
	return digest, err
}

// sameSource says whether the kept source is the wanted one, but for the digest that
// it was given.
func sameSource(wanted, kept *addonsv1.BundleSource) bool {
	pinned := *wanted
	if pinned.Digest == "" {
		pinned.Digest = kept.Digest
	}
	return equality.Semantic.DeepEqual(&pinned, kept)
}

// bundleRetry is when a source is asked again that can't say when, and isn't watched.
const bundleRetry = 15 * time.Second

// newestOf returns the newest revision, nil if there is none.
func newestOf(revisions []appsv1.ControllerRevision) *appsv1.ControllerRevision {
	if len(revisions) == 0 {
		return nil
	}
	return &revisions[0]
}
