// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance/arbiter"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-addons-cluster-x-k8s-io-v1beta1-providerinstance,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=addons.cluster.x-k8s.io,resources=providerinstances,versions=v1beta1,name=validation.providerinstance.addons.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

// ProviderInstance lets no two live instances claim one object, and nobody claim what he
// has no rights in. It isn't checked again anywhere else: while it is down no claim can
// be stored.
type ProviderInstance struct {
	Arbiter *arbiter.Arbiter
	// Reviews asks the API server what a user may do.
	Reviews client.Writer
}

var _ admission.Validator[*addonsv1.ProviderInstance] = &ProviderInstance{}

// SetupWithManager registers the webhook.
func (w *ProviderInstance) SetupWithManager(mgr manager.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &addonsv1.ProviderInstance{}).WithValidator(w).Complete()
}

// ValidateCreate refuses the claim of a scope that isn't free.
func (w *ProviderInstance) ValidateCreate(ctx context.Context, pi *addonsv1.ProviderInstance) (admission.Warnings, error) {
	return nil, w.judge(ctx, nil, pi)
}

// ValidateUpdate refuses the claim of a scope that isn't free, an object that
// another process writes, and a claim with a step left out.
func (w *ProviderInstance) ValidateUpdate(ctx context.Context, before, after *addonsv1.ProviderInstance) (admission.Warnings, error) {
	return nil, w.judge(ctx, before, after)
}

// ValidateDelete allows every deletion.
func (w *ProviderInstance) ValidateDelete(context.Context, *addonsv1.ProviderInstance) (admission.Warnings, error) {
	return nil, nil
}

func (w *ProviderInstance) judge(ctx context.Context, before, after *addonsv1.ProviderInstance) error {
	refusal, err := w.Arbiter.Judge(ctx, before, after)
	if err == nil && refusal == nil && claims(before, after) {
		var request admission.Request
		if request, err = admission.RequestFromContext(ctx); err == nil {
			refusal, err = w.judgeClaimant(ctx, &request.UserInfo, after)
		}
	}
	if err != nil {
		return err
	}
	if refusal == nil {
		return nil
	}
	return refusal.StatusError(after)
}

// claims reports whether the write asks for a scope. One that leaves the spec as it is, as
// of a label, asks for nothing.
func claims(before, after *addonsv1.ProviderInstance) bool {
	return after.Spec.Claim != addonsv1.ScopeWaiting && (before == nil || !equality.Semantic.DeepEqual(before.Spec, after.Spec))
}
