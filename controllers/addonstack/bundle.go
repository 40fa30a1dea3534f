// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/bundle"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// expansion is what a revision keeps of a stack with spec.source: the digest of the
// bundle, and all add-ons, those in it with their digests.
type expansion struct {
	digest string
	addons []addonsv1.Addon
}

// expand reads the stack's bundle; nil if it has none. What the newest revision has
// of it stays while neither the spec nor the bundle changes. An exact version
// elsewhere isn't looked up again: a source that is down, or moved its tag, changes
// nothing.
func (r *Reconciler) expand(ctx context.Context, s *addonsv1.AddonStack, newest *appsv1.ControllerRevision) (*expansion, error) {
	if s.Spec.Source == nil {
		return nil, nil
	}
	kept, err := keptSpec(s, newest)
	if err != nil {
		return nil, err
	}
	digest, err := r.digestOf(ctx, s, kept)
	if err != nil {
		return nil, err
	}
	if kept.Source != nil && kept.Source.Digest == digest && stack.Generation(newest) == s.Generation {
		return &expansion{digest: digest, addons: kept.Addons}, nil
	}
	from := *s.Spec.Source
	from.Digest = digest
	opened, err := r.Sources.OpenBundle(ctx, s.Namespace, &from)
	if err != nil {
		return nil, err
	}
	expanded, err := bundle.Expand(opened, &s.Spec)
	if err != nil {
		return nil, err
	}
	if kept.Source == nil || kept.Source.Digest != digest {
		r.tell(s, expanded.Notes)
	}
	return &expansion{digest: digest, addons: expanded.Addons}, nil
}

// keptSpec is that of the newest revision, empty if there is none.
func keptSpec(s *addonsv1.AddonStack, newest *appsv1.ControllerRevision) (*addonsv1.AddonStackSpec, error) {
	if newest == nil || !metav1.IsControlledBy(newest, s) {
		return &addonsv1.AddonStackSpec{}, nil
	}
	return stack.SpecOf(newest)
}

// digestOf the stack's bundle now.
func (r *Reconciler) digestOf(ctx context.Context, s *addonsv1.AddonStack, kept *addonsv1.AddonStackSpec) (string, error) {
	from := *s.Spec.Source
	remote := from.OCI != nil || from.HTTP != nil
	if remote && kept.Source != nil && kept.Source.Digest != "" && sameSource(&from, kept.Source) {
		return kept.Source.Digest, nil
	}
	said := from.Digest
	from.Digest = "" // the bundle itself has to be asked for: whoever knows a digest may not be let in
	digest, err := r.Sources.Resolve(ctx, source.BundleOf(s.Namespace, &from))
	if err == nil && said != "" && said != digest {
		err = &bundle.Error{Err: fmt.Errorf("source.digest: the bundle has digest %s, not %s; correct it, or the bundle", digest, said)}
	}
	return digest, err
}

// tell says what the bundle is, and what of it isn't used.
func (r *Reconciler) tell(s *addonsv1.AddonStack, notes []string) {
	if len(notes) > 0 {
		const limit = 1000 // bytes: an event's note has up to 1024
		r.Recorder.Eventf(s, nil, corev1.EventTypeNormal, "BundleRead", "Expand", "%s", shortenTo(strings.Join(notes, "; "), limit))
	}
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

// of is the stack with the expansion in its spec. Without one it is the stack itself.
func (e *expansion) of(s *addonsv1.AddonStack) *addonsv1.AddonStack {
	if e == nil {
		return s
	}
	expanded := *s
	expanded.Spec.Source = s.Spec.Source.DeepCopy()
	expanded.Spec.Source.Digest, expanded.Spec.Addons = e.digest, e.addons
	return &expanded
}

// into puts the expansion into the stack as the API server serves it. Fields that this
// version of the program doesn't know stay.
func (e *expansion) into(served map[string]any) error {
	if e == nil {
		return nil
	}
	spec, _ := served["spec"].(map[string]any)
	from, ok := spec["source"].(map[string]any)
	if !ok {
		return errors.New("spec.source isn't in the spec as it is served")
	}
	from["digest"] = e.digest
	if own, _ := spec["addons"].([]any); len(own) > 0 {
		return e.intoOwn(own)
	}
	data, err := json.Marshal(e.addons)
	if err != nil {
		return fmt.Errorf("add-ons of the bundle: %w", err)
	}
	var addons []any
	if err := json.Unmarshal(data, &addons); err != nil {
		return fmt.Errorf("add-ons of the bundle: %w", err)
	}
	spec["addons"] = addons
	return nil
}

// intoOwn puts the digests of charts into the stack's own add-ons.
func (e *expansion) intoOwn(own []any) error {
	if len(own) != len(e.addons) {
		return errors.New("spec.addons isn't as it was validated")
	}
	for i := range e.addons {
		if e.addons[i].Chart.Path == "" {
			continue
		}
		addon, _ := own[i].(map[string]any)
		chart, ok := addon["chart"].(map[string]any)
		if !ok {
			return errors.New("spec.addons isn't as it was validated")
		}
		chart["digest"] = e.addons[i].Chart.Digest
	}
	return nil
}

// reportBundle says why the bundle can't be used; what was kept before stays in force.
// It returns when to look again, 0 if an event will tell.
func (r *Reconciler) reportBundle(s *addonsv1.AddonStack, err error) (again time.Duration, _ error) {
	if invalid, ok := errors.AsType[*bundle.Error](err); ok {
		r.reportInvalidBundle(s, addonsv1.InvalidSourceReason, invalid)
		return 0, nil
	}
	failed, ok := errors.AsType[*source.Error](err)
	if !ok {
		return 0, err
	}
	switch failed.Reason {
	case source.ReasonArtifactInvalid, source.ReasonArtifactRefused, source.ReasonArtifactTooLarge:
		r.reportInvalidBundle(s, failed.Reason, err)
		return failed.RetryAfter, nil
	}
	c := metav1.Condition{Type: addonsv1.SourcesReadyCondition, Status: metav1.ConditionUnknown, Reason: failed.Reason}
	if failed.Reason == source.ReasonArtifactPending {
		c.Reason = addonsv1.SourcesPendingReason
	}
	c.Message = "The spec waits for its bundle. " + shorten("spec."+err.Error())
	conditions.Set(s, c)
	if failed.Wait {
		return failed.RetryAfter, nil
	}
	return cmp.Or(failed.RetryAfter, bundleRetry), nil
}

// bundleRetry is when a source is asked again that can't say when, and isn't watched.
const bundleRetry = 15 * time.Second

// reportInvalidBundle writes the Valid condition, and an event when it turns False.
func (r *Reconciler) reportInvalidBundle(s *addonsv1.AddonStack, reason string, err error) {
	c := metav1.Condition{
		Type: addonsv1.ValidCondition, Status: metav1.ConditionFalse, Reason: reason,
		Message: shortenTo("spec.source: "+err.Error(), maxProblem) + ". Clusters stay as they are",
	}
	if before := conditions.Get(s, c.Type); before == nil || before.Message != c.Message {
		r.Recorder.Eventf(s, nil, corev1.EventTypeWarning, c.Reason, "Expand", "%s", c.Message)
	}
	conditions.Set(s, c)
}

// maxProblem leaves room in an event's note, which has up to 1024 bytes.
const maxProblem = 900

// newestOf returns the newest revision, nil if there is none.
func newestOf(revisions []appsv1.ControllerRevision) *appsv1.ControllerRevision {
	if len(revisions) == 0 {
		return nil
	}
	return &revisions[0]
}
