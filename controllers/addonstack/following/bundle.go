// SPDX-License-Identifier: Apache-2.0

package following

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/bundle"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Bundles makes add-ons of the bundles that stacks name.
type Bundles struct {
	Sources *source.Sources
	Events  report.Events
}

// Expand reads the stack's bundle, in the version that is pinned; nil if the stack has none. While
// neither the spec nor the bundle changes, the newest revision tells what is in it. An exact
// version elsewhere isn't looked up again, so that a source which is down changes nothing. If the bundle can't be used,
// the source is asked whether it has another one by now.
func (r Bundles) Expand(ctx context.Context, s *addonsv1.AddonStack, pins stack.Pins, revisions []appsv1.ControllerRevision) (*Expansion, error) {
	if s.Spec.Source == nil {
		return nil, nil
	}
	kept, err := stack.NewestSpec(revisions)
	if err != nil {
		return nil, err
	}
	unpinned := pinnedSource(s, pins)
	digest, err := r.Digest(ctx, s.Namespace, unpinned, kept)
	if err != nil {
		return nil, err
	}
	if kept.Source != nil && kept.Source.Digest == digest && stack.Generation(&revisions[0]) == s.Generation {
		if addons, complete := KeptAddons(s.Spec.Addons, kept.Addons); complete {
			e := &Expansion{bundle.Expansion{Addons: addons}, digest}
			if lacksNotes(s) {
				if expanded, err := r.open(ctx, s, unpinned, digest); err == nil { // a source that is down changes nothing
					e.Notes = expanded.Notes
				}
			}
			return e, nil
		}
	}
	expanded, err := r.open(ctx, s, unpinned, digest)
	if err != nil {
		if current := r.Sources.Current(ctx, reference.BundleOf(s.Namespace, unpinned), digest); current != digest {
			digest = current
			expanded, err = r.open(ctx, s, unpinned, digest)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(expanded.Notes) > 0 && (kept.Source == nil || kept.Source.Digest != digest) {
		r.Events.Send(s, corev1.EventTypeNormal, "BundleRead", "Expand", strings.Join(expanded.Notes, "; "))
	}
	return &Expansion{*expanded, digest}, nil
}

// open reads a bundle, and makes the stack's add-ons of it. If the source names no digest, an error says when it
// is asked again for another bundle.
func (r Bundles) open(ctx context.Context, s *addonsv1.AddonStack, from *addonsv1.BundleSource, digest string) (*bundle.Expansion, error) {
	exact := *from
	exact.Digest = cmp.Or(digest, from.Digest)
	var expanded *bundle.Expansion
	ctx, release := budget.Holding(ctx)
	defer release()
	opened, err := r.Sources.OpenBundle(ctx, s.Namespace, &exact)
	if err == nil {
		expanded, err = bundle.Expand(opened, &s.Spec)
	}
	return expanded, r.Sources.Refused(ctx, reference.BundleOf(s.Namespace, from), digest, err)
}

// tryBundle returns why a version of the bundle can't be the stack's, nil if it can. The error is
// of type *failure.Error, unless the request continues.
func (r Bundles) tryBundle(ctx context.Context, s *addonsv1.AddonStack, pin stack.Pin) error {
	_, err := r.open(ctx, s, pinnedSource(s, stack.Pins{addonsv1.FollowedSource: pin}), "")
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || IsOfSource(failed) {
		return err
	}
	ofSource := *failed
	ofSource.Field, ofSource.Subject, ofSource.Err = addonsv1.FollowedSource, pin.Version, failed
	if failed.Reason == addonsv1.InvalidSourceReason {
		ofSource.Reason = failure.ArtifactInvalid
	}
	return &ofSource
}

// IsOfSource reports whether a bundle can't be had. Else the failure is about what is in it.
func IsOfSource(failed *failure.Error) bool {
	return strings.HasPrefix(failed.Field, addonsv1.FollowedSource) && failed.Reason != addonsv1.InvalidSourceReason
}

// pinnedSource returns the stack's bundle in the version that it is pinned to.
func pinnedSource(s *addonsv1.AddonStack, pins stack.Pins) *addonsv1.BundleSource {
	return pins.Into(&addonsv1.AddonStackSpec{Source: s.Spec.Source}).Source
}

// Digest returns the digest of a bundle now.
func (r Bundles) Digest(ctx context.Context, namespace string, wanted *addonsv1.BundleSource, kept *addonsv1.AddonStackSpec) (string, error) {
	from := *wanted
	if reference.BundleOf(namespace, &from).Remote() && kept.Source != nil && kept.Source.Digest != "" && sameSource(&from, kept.Source) {
		return kept.Source.Digest, nil
	}
	named := from.Digest
	from.Digest = "" // the bundle itself has to be asked for: whoever knows a digest may not be let in
	digest, err := r.Sources.Resolve(ctx, reference.BundleOf(namespace, &from))
	if err == nil && named != "" && named != digest {
		err = &failure.Error{Reason: addonsv1.InvalidSourceReason, Field: addonsv1.FollowedSource + ".digest", Err: fmt.Errorf(
			"the bundle has digest %s, not %s; correct it, or the bundle", digest, named)}
	}
	return digest, err
}

// sameSource reports whether the kept source is the wanted one, apart from the digest.
func sameSource(wanted, kept *addonsv1.BundleSource) bool {
	pinned := *wanted
	if pinned.Digest == "" {
		pinned.Digest = kept.Digest
	}
	return equality.Semantic.DeepEqual(&pinned, kept)
}

// Expansion has what a revision keeps of a stack with spec.source: the digest of the
// bundle, and all add-ons, those in it with their digests. Without notes it wasn't read now.
type Expansion struct {
	bundle.Expansion
	Digest string
}

// KeptAddons returns the add-ons of the bundle as the newest revision has them, with the stack's own.
func KeptAddons(own, kept []addonsv1.Addon) (addons []addonsv1.Addon, complete bool) {
	if len(own) == 0 {
		return kept, true
	}
	digests := map[string]string{}
	for i := range kept {
		digests[kept[i].Name] = kept[i].Chart.Digest
	}
	addons = slices.Clone(own)
	for i := range addons {
		chart := &addons[i].Chart
		if chart.Path == "" {
			continue
		}
		if chart.Digest = digests[addons[i].Name]; chart.Digest == "" {
			return nil, false
		}
	}
	return addons, true
}

// Of returns the stack with the expansion in its spec. Without one it is the stack itself.
func (e *Expansion) Of(s *addonsv1.AddonStack) *addonsv1.AddonStack {
	if e == nil {
		return s
	}
	expanded := *s
	expanded.Spec.Source = s.Spec.Source.DeepCopy()
	expanded.Spec.Source.Digest, expanded.Spec.Addons = e.Digest, e.Addons
	return &expanded
}
