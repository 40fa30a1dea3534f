// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/version"
)

// keep makes the revision of the spec, or makes the one that has it the newest. It reads
// from the API server: the cache lacks fields that this program doesn't know, revisions with a
// previous watch label, and what another instance wrote a moment ago.
func (h History) keep(ctx context.Context, s, expanded *addonsv1.AddonStack, pins stack.Pins) ([]appsv1.ControllerRevision, error) {
	served, err := h.served(ctx, s)
	if err != nil {
		return nil, err
	}
	revisions, err := management.Revisions(ctx, h.APIReader, s)
	if err != nil {
		return nil, err
	}
	next := int64(1)
	if len(revisions) > 0 {
		if stack.Generation(&revisions[0]) > s.Generation {
			return nil, ErrStale
		}
		next = revisions[0].Revision + 1
	}
	kept, err := stack.NewestSpec(revisions)
	if err != nil {
		return nil, err
	}
	followers, before := stack.Followers(&s.Spec), stack.PinsOf(&s.Spec, kept)
	own := pins[addonsv1.FollowedSource]
	if pins = stack.NewestOf(followers, before, pins); pins[addonsv1.FollowedSource] != own {
		return nil, ErrStale // another instance took a bundle whose add-ons aren't these
	}
	content, err := h.contentOf(ctx, s, expanded, served, pins, h.Values.DigestNow)
	if err != nil {
		return nil, err
	}
	var known *appsv1.ControllerRevision
	if at := slices.IndexFunc(revisions, func(is appsv1.ControllerRevision) bool { return stack.Keeps(&is, content) }); at < 0 {
		known = stack.Snapshot(s, content, next)
		renew(s, revisions, known, next, served)
		err = h.create(ctx, s, known)
	} else {
		known = revisions[at].DeepCopy()
		err = h.reuse(ctx, s, known, revisions, next, served)
	}
	if err != nil {
		return nil, fmt.Errorf("keeping revision %s: %w", known.Name, err)
	}
	following.Announce(s, before, pins, h.Events)
	others := slices.DeleteFunc(revisions, func(other appsv1.ControllerRevision) bool { return other.Name == known.Name })
	return slices.Insert(others, 0, *known), nil
}

// renew has a revision become the newest one of these, with a number, and notes who edited the served stack if an edit brings it.
func renew(s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision, known *appsv1.ControllerRevision, number int64, served *unstructured.Unstructured) {
	edited := len(revisions) == 0 || stack.Generation(&revisions[0]) != s.Generation
	rollout.Renew(revisions, known, number, edited, s.Spec.Rollout != nil)
	delete(known.Annotations, addonsv1.EditedByAnnotation)
	if by := EditorOf(served); edited && by != "" {
		metav1.SetMetaDataAnnotation(&known.ObjectMeta, addonsv1.EditedByAnnotation, by)
	}
}

// contentOf returns the content of the stack's next revision. For one that is kept, the digests of inputs come from the API server:
// an instance whose cache is behind would bring previous ones back.
func (h History) contentOf(ctx context.Context, s, expanded *addonsv1.AddonStack, served *unstructured.Unstructured, pins stack.Pins, digest digester) ([]byte, error) {
	inputs, err := inputsOf(ctx, expanded, digest)
	if err != nil {
		return nil, err
	}
	return stack.Content(served, &s.Spec, pins.Into(&expanded.Spec), inputs)
}

// served reads the stack as the API server serves it. It fails if this program doesn't know all fields of its spec.
func (h History) served(ctx context.Context, s *addonsv1.AddonStack) (*unstructured.Unstructured, error) {
	served := &unstructured.Unstructured{}
	served.SetGroupVersionKind(addonsv1.GroupVersion.WithKind("AddonStack"))
	if err := h.APIReader.Get(ctx, client.ObjectKeyFromObject(s), served); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, ErrStale
		}
		return nil, fmt.Errorf("reading AddonStack %s: %w", s.Name, err)
	}
	if served.GetUID() != s.UID || served.GetGeneration() != s.Generation {
		return nil, ErrStale // what was validated isn't what is there now
	}
	unknown, err := stack.Unknown(served)
	if err == nil && len(unknown) > 0 {
		err = unknownFields(unknown)
	}
	if err != nil {
		return nil, err
	}
	return served, nil
}

// create makes the revision. Another instance may make the same one at the same time.
func (h History) create(ctx context.Context, s *addonsv1.AddonStack, wanted *appsv1.ControllerRevision) error {
	content := wanted.Data.Raw
	err := h.Client.Create(ctx, wanted)
	if err == nil {
		h.Events.Recorder.Eventf(s, wanted, corev1.EventTypeNormal, "RevisionCreated", "Snapshot", "Kept spec as revision %d, %s", wanted.Revision, wanted.Name)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing := &appsv1.ControllerRevision{}
	if err := h.APIReader.Get(ctx, client.ObjectKeyFromObject(wanted), existing); err != nil {
		return err
	}
	if !stack.Keeps(existing, content) {
		return fmt.Errorf("there is one of this name with another spec; delete ControllerRevision %s", existing.Name)
	}
	if !metav1.IsControlledBy(existing, s) {
		if err := h.inheritFromPrevious(ctx, existing, wanted); err != nil {
			return err
		}
	}
	*wanted = *existing
	return nil
}

// inheritFromPrevious gives the revision of a stack of the same name that is gone to the
// one that took its place, without its marks. If the garbage collector is faster, the revision is made again.
func (h History) inheritFromPrevious(ctx context.Context, existing, wanted *appsv1.ControllerRevision) error {
	before := existing.DeepCopy()
	existing.OwnerReferences, existing.Revision = wanted.OwnerReferences, wanted.Revision
	rollout.Begin(existing, rollout.Edited, false) // that of the wanted one follows
	for key, value := range wanted.Annotations {
		metav1.SetMetaDataAnnotation(&existing.ObjectMeta, key, value)
	}
	err := h.Client.Patch(ctx, existing, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return ErrStale
	}
	return err
}

// reuse makes a known revision the newest: the spec returned to it. With several instances, only
// the first does so. The others see it and agree.
func (h History) reuse(ctx context.Context, s *addonsv1.AddonStack, known *appsv1.ControllerRevision, revisions []appsv1.ControllerRevision, next int64, served *unstructured.Unstructured) error {
	goesBack := known.Name != revisions[0].Name
	if !goesBack && stack.Generation(known) == s.Generation {
		return nil
	}
	before := known.DeepCopy()
	if goesBack {
		renew(s, revisions, known, next, served)
	}
	stack.SetGeneration(known, s.Generation)
	if err := h.Client.Patch(ctx, known, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	if goesBack {
		h.Events.Recorder.Eventf(s, known, corev1.EventTypeNormal, "RevisionReused", "Snapshot", "Went back to %s, now revision %d", known.Name, known.Revision)
	}
	return nil
}

// unknownFields returns the error of a spec with fields which this program doesn't know: the CRDs are newer. Any of them
// may restrict the spec, so such a spec isn't taken up. The error names the fields, and the way out.
func unknownFields(fields []string) error {
	return failure.New(addonsv1.UnknownFieldsReason,
		"%s: version %s of the provider instance doesn't know this, and so can't tell what the stack asks for. Upgrade the instance, or take it out of the spec",
		message.List(fields, ", ", message.Few), version.Get())
}
