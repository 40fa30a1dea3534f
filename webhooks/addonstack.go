// SPDX-License-Identifier: Apache-2.0

// Package webhooks holds admission: only what CEL rules on the types can't check. The controllers
// check everything again, so an object that was stored without a webhook does no harm.
package webhooks

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capiconversion "sigs.k8s.io/cluster-api/util/conversion"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/webhooks/conversion"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-addons-cluster-x-k8s-io-v1beta1-addonstack,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=addons.cluster.x-k8s.io,resources=addonstacks,versions=v1beta1,name=validation.addonstack.addons.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

// AddonStack validates AddonStacks.
type AddonStack struct {
	allowsDeletion[*addonsv1.AddonStack]

	// Reader lists the other AddonStacks of a namespace, on which add-ons may depend.
	Reader client.Reader
	// Clusters is a cache of Clusters, nil if this process may not read them. Then no warning is about them.
	Clusters client.Reader
}

var _ admission.Validator[*addonsv1.AddonStack] = &AddonStack{}

// SetupWithManager registers the webhook.
func (w *AddonStack) SetupWithManager(mgr manager.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &addonsv1.AddonStack{}).WithValidator(w).Complete()
}

// exceedsSchema reports whether the API server refuses a spec for what it has many of, before it asks. Others may ask, too, and
// the work is with these.
func exceedsSchema(spec *addonsv1.AddonStackSpec) bool {
	const maxAddons, maxValuesFrom, maxDependencies = 64, 16, 63
	return len(spec.Addons) > maxAddons || slices.ContainsFunc(spec.Addons, func(a addonsv1.Addon) bool {
		return len(a.ValuesFrom) > maxValuesFrom || len(a.DependsOn) > maxDependencies
	})
}

var errExceedsSchema = apierrors.NewBadRequest("the spec has more add-ons, valuesFrom or dependsOn than an API server takes")

// ValidateCreate refuses a spec that can't be used.
func (w *AddonStack) ValidateCreate(ctx context.Context, s *addonsv1.AddonStack) (admission.Warnings, error) {
	if exceedsSchema(&s.Spec) {
		return nil, errExceedsSchema
	}
	problems := append(stack.Validate(&s.Spec), w.cycles(ctx, s)...)
	return w.warnings(ctx, s), invalid(s, append(problems, changesOfLacking(ctx, &addonsv1.AddonStackSpec{}, &s.Spec)...))
}

// ValidateUpdate refuses problems that the update brings in. An object with a problem that was
// stored before can still be edited. The Valid condition shows the problem.
func (w *AddonStack) ValidateUpdate(ctx context.Context, before, after *addonsv1.AddonStack) (admission.Warnings, error) {
	if exceedsSchema(&before.Spec) || exceedsSchema(&after.Spec) {
		return nil, errExceedsSchema
	}
	forged := changesOfLacking(ctx, &before.Spec, &after.Spec)
	if len(forged) > 0 || !after.DeletionTimestamp.IsZero() {
		return nil, invalid(after, forged)
	}
	added := stack.Validate(&after.Spec)
	if len(added) > 0 {
		known := map[string]bool{}
		for _, p := range stack.Validate(&before.Spec) {
			known[p.Error.Error()] = true
		}
		added = slices.DeleteFunc(added, func(p stack.Problem) bool { return known[p.Error.Error()] })
	}
	if !equality.Semantic.DeepEqual(before.Spec.Addons, after.Spec.Addons) {
		added = append(added, w.cycles(ctx, after)...)
	}
	return w.warnings(ctx, after), invalid(after, added)
}

// readTimeout bounds the wait for the cache of Clusters: a warning holds no write up.
const readTimeout = time.Second

// warnings returns what is allowed, and probably a mistake. Clients show it without the object, and a file may have several stacks.
func (w *AddonStack) warnings(ctx context.Context, s *addonsv1.AddonStack) (all admission.Warnings) {
	for _, text := range append(stack.Warnings(&s.Spec), w.selectionWarnings(ctx, s)...) {
		all = append(all, "AddonStack "+s.Name+": "+text)
	}
	return all
}

func (w *AddonStack) selectionWarnings(ctx context.Context, s *addonsv1.AddonStack) []string {
	if w.Clusters == nil || len(s.Spec.ClusterKinds) > 0 { // which may be of other kinds
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	clusters, members := &clusterv1.ClusterList{}, map[string]*member.Member{}
	if err := w.Clusters.List(ctx, clusters, client.InNamespace(s.Namespace)); err != nil {
		logf.FromContext(ctx).V(1).Info("Clusters can't be read, as of a namespace of another instance", "error", err.Error())
	}
	for i := range clusters.Items {
		members[clusters.Items[i].Name] = member.OfCluster(&clusters.Items[i])
	}
	return stack.SelectionWarnings(s.Namespace, &s.Spec, members)
}

// cycles returns a problem if add-ons of the stack and of others depend on each other. If the
// others can't be read there is none: the controllers look again.
func (w *AddonStack) cycles(ctx context.Context, s *addonsv1.AddonStack) []stack.Problem {
	if !stack.DependsOnOthers(s.Spec.Addons) {
		return nil
	}
	others := &addonsv1.AddonStackList{}
	if err := w.Reader.List(ctx, others, client.InNamespace(s.Namespace)); err != nil {
		logf.FromContext(ctx).Error(err, "Could not look for dependencies across AddonStacks", "AddonStack", client.ObjectKeyFromObject(s))
		return nil
	}
	stacks := map[string][]addonsv1.Addon{}
	for i := range others.Items {
		stacks[others.Items[i].Name] = others.Items[i].Spec.Addons
	}
	stacks[s.Name] = s.Spec.Addons
	return stack.CyclesAcross(s.Name, stacks)
}

// changesOfLacking returns a problem if a write in v1alpha1 changes fields that v1alpha1 lacks. They come from an annotation,
// which a client may leave out or forge, and the API server asks none of v1beta1's rules about them.
func changesOfLacking(ctx context.Context, before, after *addonsv1.AddonStackSpec) []stack.Problem {
	request, _ := admission.RequestFromContext(ctx) // without one nobody writes
	if request.RequestKind == nil || request.RequestKind.Version != addonsv1alpha1.GroupVersion.Version ||
		equality.Semantic.DeepEqual(conversion.Lacking(*before), conversion.Lacking(*after)) {
		return nil
	}
	return []stack.Problem{{Error: field.Forbidden(field.NewPath("metadata", "annotations").Key(capiconversion.DataAnnotation),
		"it has the fields that v1alpha1 lacks, which can't be changed here: leave it as the API server shows it, or edit the object in v1beta1")}}
}

func invalid(s *addonsv1.AddonStack, problems []stack.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	var all field.ErrorList
	for _, p := range problems {
		all = append(all, p.Error)
	}
	return apierrors.NewInvalid(addonsv1.GroupVersion.WithKind("AddonStack").GroupKind(), s.Name, all)
}

// allowsDeletion is a part of validators that allow every deletion.
type allowsDeletion[T any] struct{}

// ValidateDelete allows every deletion.
func (allowsDeletion[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) {
	return nil, nil
}
