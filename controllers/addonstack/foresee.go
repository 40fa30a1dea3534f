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
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Foresee returns the revision that a stack would have with the spec of a template, which is decoded and valid: the one that an
// edit would make. Without a template it is the one that the stack's spec makes as it is written, once its pause ends. Nothing is
// written, and no event is sent. Versions are those that the stack has. While a source is asked for a bundle, it returns an error
// that says to wait, and wake is called later.
func (r *Reconciler) Foresee(ctx context.Context, edited *addonsv1.AddonStack, template map[string]any, wake func()) (*appsv1.ControllerRevision, error) {
	ctx = r.Sources.Waiting(budget.WithTenant(ctx, budget.Tenant{Namespace: edited.Namespace}), "AddonPlan of "+edited.Namespace+"/"+edited.Name, wake)
	revisions, err := management.Revisions(ctx, r.Client, edited)
	if err != nil {
		return nil, err
	}
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
	var served *unstructured.Unstructured
	if template != nil {
		served = &unstructured.Unstructured{Object: map[string]any{"spec": template}}
		served.SetName(edited.Name)
	}
	return r.history().Foresee(ctx, edited, expansion.Of(edited), served, pins, revisions)
}
