// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Foresee returns the revision that a stack with these revisions would have with another spec, which is valid: the one that an edit
// would make. The edited stack is also given as the API server would serve it; if that is nil, its spec is the one that is written,
// which is kept once its pause ends. Nothing is written, and no event is sent. Versions are those that the stack has. While a source is
// asked for a bundle, it returns an error that says to wait, and wake is called later.
func (r *Reconciler) Foresee(
	ctx context.Context, edited *addonsv1.AddonStack, served *unstructured.Unstructured, revisions []appsv1.ControllerRevision, wake func(),
) (*appsv1.ControllerRevision, error) {
	ctx = r.Sources.Waiting(budget.WithTenant(ctx, budget.Tenant{Namespace: edited.Namespace}), "AddonPlan of "+edited.Namespace+"/"+edited.Name, wake)
	kept, err := stack.NewestSpec(revisions)
	if err != nil {
		return nil, err
	}
	pins := stack.PinsOf(&edited.Spec, kept)
	for _, follower := range stack.Followers(&edited.Spec) {
		if _, known := pins[follower.Name]; !known {
			return nil, failure.New(addonsv1.PlanVersionNotNamedReason,
				"%s follows versions that the stack doesn't follow yet, and a plan looks for none: name the version in the template", follower)
		}
	}
	silent := following.Bundles{Sources: r.Sources, Events: report.Events{Recorder: &events.FakeRecorder{}}}
	expansion, err := silent.Expand(ctx, edited, pins, revisions)
	if err != nil {
		return nil, err
	}
	return r.history().Foresee(ctx, edited, expansion.Of(edited), served, pins, revisions)
}
