// SPDX-License-Identifier: Apache-2.0

package addonplan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/plan"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// subject is what a plan is of.
type subject struct {
	stack     *addonsv1.AddonStack // with the spec of a template, if the plan has one
	revisions []appsv1.ControllerRevision
	// Basis has the revision that clusters would get, and the clusters, by the names of their ClusterAddons.
	plan.Basis
	request plan.Request // of a cluster that the revision selects
	// leaves are the clusters that the revision doesn't select any more, and selected those that it does.
	leaves   sets.Set[string]
	selected []standing.Cluster
}

// isKept reports whether the stack's spec is kept as a revision. That of a paused stack isn't before the pause ends.
func (of *subject) isKept() bool {
	return len(of.revisions) > 0 && stack.Generation(&of.revisions[0]) == of.stack.Generation
}

// waits returns an error for people about what passes.
func waits(format string, args ...any) *failure.Error {
	why := failure.New(addonsv1.PlanWaitingReason, format, args...)
	why.Wait = true
	return why
}

// gather finds out what a plan is of. An error of type *failure.Error is for people, and may say to wait.
func (r *Reconciler) gather(ctx context.Context, p *addonsv1.AddonPlan) (*subject, error) {
	of, err := r.readStack(ctx, p)
	if err != nil {
		return nil, err
	}
	is := &appsv1.ControllerRevision{}
	switch {
	case p.Spec.Template != nil:
		is, err = r.fromTemplate(ctx, p, of)
	case p.Spec.Revision == "" && annotations.HasPaused(of.stack) && !of.isKept():
		is, err = r.foresee(ctx, p, of, "AddonStack "+of.stack.Name+": spec", nil)
	default:
		is, err = revisionOf(p, of)
	}
	if err != nil {
		return nil, err
	}
	spec, unknown, err := stack.Read(is)
	if err == nil && len(unknown) > 0 {
		return nil, failure.New(addonsv1.UnknownFieldsReason, "this version of the instance doesn't know %s: upgrade it", message.List(unknown, ", ", message.Few))
	}
	of.request = plan.Request{Stack: of.stack.Name, Revision: is.Name, Spec: spec, RecordedValues: p.Spec.RecordedValues}
	of.request.Cluster.Namespace = p.Namespace
	if err == nil {
		of.request.Inputs, err = stack.InputsOf(is)
	}
	if err != nil {
		return nil, err
	}
	written := &of.stack.Spec
	spec.DeletionPolicy, spec.RemovalLimit, spec.AllowedRemovals, spec.Rollout = written.DeletionPolicy, written.RemovalLimit, written.AllowedRemovals, written.Rollout
	of.Revision, of.Replaced = is.Name, is.Annotations[addonsv1.RolloutInputsReplacedAnnotation]
	return of, r.selectClusters(ctx, p, of)
}

// readStack reads the stack and its revisions. A stack that isn't there may be made of the template.
func (r *Reconciler) readStack(ctx context.Context, p *addonsv1.AddonPlan) (*subject, error) {
	of := &subject{stack: &addonsv1.AddonStack{}}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.Spec.StackName}, of.stack)
	switch isMissing := apierrors.IsNotFound(err); {
	case isMissing && p.Spec.Template != nil:
		of.stack = &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Spec.StackName, Labels: p.Labels}} // one says whose it is
		return of, nil
	case isMissing:
		return nil, failure.New(addonsv1.PlanStackNotFoundReason, "spec.stackName: there is no AddonStack %s for this instance: see its watch label, and that of the plan", p.Spec.StackName)
	case err != nil:
		return nil, fmt.Errorf("reading AddonStack %s: %w", p.Spec.StackName, err)
	case !of.stack.DeletionTimestamp.IsZero():
		return nil, failure.New(addonsv1.PlanStackNotFoundReason, "AddonStack %s is being deleted: see its finalizers", p.Spec.StackName)
	}
	of.revisions, err = management.Revisions(ctx, r.Client, of.stack)
	return of, err
}

// revisionOf returns the revision that a plan without a template is of.
func revisionOf(p *addonsv1.AddonPlan, of *subject) (*appsv1.ControllerRevision, error) {
	name := p.Spec.Revision
	switch s := of.stack; {
	case name != "":
	case s.Status.ObservedGeneration != s.Generation && !p.IsFinished():
		return nil, waits("AddonStack %s was edited, and isn't kept as a revision yet: see its conditions", s.Name)
	case len(of.revisions) == 0:
		return nil, failure.New(addonsv1.PlanStackNotFoundReason, "AddonStack %s has no revision yet: see its conditions", s.Name)
	case s.Spec.Rollout != nil:
		name = cmp.Or(standing.RolloutOf(s, of.revisions).Revision(), of.revisions[0].Name)
	default:
		name = of.revisions[0].Name
	}
	at := slices.IndexFunc(of.revisions, func(is appsv1.ControllerRevision) bool { return is.Name == name })
	if at < 0 {
		return nil, failure.New(addonsv1.PlanRevisionNotFoundReason, "spec.revision: AddonStack %s has no revision %s; kubectl chandler history names those that are kept", of.stack.Name, name)
	}
	return &of.revisions[at], nil
}

// fromTemplate returns the revision that the template would be, and gives the stack its spec.
func (r *Reconciler) fromTemplate(ctx context.Context, p *addonsv1.AddonPlan, of *subject) (*appsv1.ControllerRevision, error) {
	edited := of.stack.DeepCopy()
	edited.Spec = addonsv1.AddonStackSpec{}
	strict, err := kjson.UnmarshalStrict(p.Spec.Template.Raw, &edited.Spec, kjson.DisallowUnknownFields)
	if err = errors.Join(append(strict, err)...); err != nil {
		return nil, failure.New(addonsv1.PlanInvalidTemplateReason, "spec.template isn't the spec of an AddonStack: %w", err)
	}
	edited.Generation++ // its bundle may have to be read
	of.stack = edited
	var content map[string]any
	_ = utiljson.Unmarshal(p.Spec.Template.Raw, &content) // it was read just now
	return r.foresee(ctx, p, of, "spec.template", &unstructured.Unstructured{Object: map[string]any{"spec": content}})
}

// foresee returns the revision that the stack would have, as the API server would serve it; nil is as it is written.
func (r *Reconciler) foresee(ctx context.Context, p *addonsv1.AddonPlan, of *subject, field string, served *unstructured.Unstructured) (*appsv1.ControllerRevision, error) {
	if problems := stack.Validate(&of.stack.Spec); len(problems) > 0 {
		return nil, failure.New(problems[0].Reason, "%s: %s", field, strings.TrimPrefix(problems[0].Error.Error(), "spec."))
	}
	key := client.ObjectKeyFromObject(p)
	return r.Foresee(ctx, of.stack, served, of.revisions, func() { r.wake.Add(key) })
}

// selectClusters finds the clusters that the revision selects, and those that it leaves, within the plan's selector.
func (r *Reconciler) selectClusters(ctx context.Context, p *addonsv1.AddonPlan, of *subject) error {
	narrowed, err := metav1.LabelSelectorAsSelector(cmp.Or(p.Spec.ClusterSelector, &metav1.LabelSelector{})) // which selects all
	if err != nil {
		return failure.New(addonsv1.InvalidSelectorReason, "spec.clusterSelector: %w", err)
	}
	members, err := r.Members.List(ctx, p.Namespace)
	if err != nil {
		return err
	}
	cas := &addonsv1.ClusterAddonList{}
	if err := r.Client.List(ctx, cas, client.InNamespace(p.Namespace), client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return fmt.Errorf("listing ClusterAddons of namespace %s: %w", p.Namespace, err)
	}
	of.leaves = sets.New[string]()
	has := map[string]bool{}
	for i := range cas.Items {
		has[cas.Items[i].Name] = stack.Assigned(cas.Items[i].Spec.Stacks, of.stack.Name).Name != ""
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		m := members[name]
		selected, err := stack.Selects(p.Namespace, of.request.Spec, m)
		named := labels.Merge(m.Labels, labels.Set{clusterv1.ClusterNameLabel: name})
		if err != nil || m.Deleting || !narrowed.Matches(named) || !selected && !has[name] {
			continue // a selector was valid when it was kept
		}
		if of.Clusters = append(of.Clusters, name); !selected {
			of.leaves.Insert(name)
		}
	}
	of.selected = standing.Select(p.Namespace, of.request.Spec, members, cas.Items)
	return nil
}
