// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/install"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/revision"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/plan"
)

// look returns what would become of an object of the revision, without an action if it stays the same.
func (p *Previewer) look(ctx context.Context, o *unstructured.Unstructured, crd bool) (plan.Change, error) {
	key, gvk := record.KeyOf(o), o.GroupVersionKind()
	c := Of(o.GetAPIVersion(), key)
	unasked, same := p.unchanged[key]
	if same && p.Seen != nil {
		if seen, known := p.Seen(key); known && seen == unasked.Fields {
			p.there.Store(unasked.UID, true)
			return plan.Change{}, nil
		}
	}
	switch {
	case key.Name == "":
		return c.As(plan.Refuse, object.ReasonObjectRejected, fmt.Sprintf("A %s has no name", key.Kind)), nil
	case p.Coming.Kinds.Has(gvk.GroupKind()):
		return c.As(plan.Unknown, object.ReasonWaitingForCRDs, "Its CustomResourceDefinition comes, or changes, with the plan"), nil
	case p.Coming.Namespaces.Has(key.Namespace):
		return c.As(plan.Unknown, object.ReasonNamespaceMissing, "Its namespace comes with the plan"), nil
	case p.Coming.Free.Has(key):
		return c.As(plan.Create, "", "Another add-on deletes it first"), nil
	}
	if aggregated, err := p.isAggregated(ctx, o); aggregated || err != nil {
		return c.As(plan.Unknown, "", "It is of an aggregated API server, of which it isn't known that it has dry runs"), err
	}
	live, err := p.Applier.Get(ctx, o)
	switch {
	case apierrors.IsNotFound(err):
		c.Action = plan.Create
		_, _, err = p.Applier.DryRun(ctx, o, "")
		return p.answered(c, key, err)
	case err != nil:
		return p.answered(c, key, err)
	}
	p.there.Store(live.GetUID(), true)
	if same && live.GetUID() == unasked.UID && live.GetDeletionTimestamp() == nil &&
		drift.FieldsOf(live.GetManagedFields(), p.Applier.Scope.Manager()) == unasked.Fields {
		return plan.Change{}, nil
	}
	return p.compare(ctx, c, o, live, crd)
}

// compare returns what would become of an object that is there.
func (p *Previewer) compare(ctx context.Context, c plan.Change, o, live *unstructured.Unstructured, crd bool) (plan.Change, error) {
	key, m := record.KeyOf(o), meta.AsPartialObjectMetadata(live)
	entry := p.entries[key]
	o, _, err := p.Applier.WithoutIgnored(ctx, o, entry, p.Ignore)
	if err != nil {
		return p.answered(c, key, err)
	}
	switch verdict, reason, message := p.Claimer.Decide(entry, crd, &m.ObjectMeta); verdict {
	case object.ClaimRefuse:
		return c.As(plan.Refuse, reason, p.Hidden.In(fmt.Sprintf("%s: %s", key, message))), nil
	case object.ClaimLeave:
		return plan.Change{}, nil
	case object.ClaimShare:
		return c.As(plan.Update, "", "It is a namespace of others: the fields that nobody else has are set"), nil
	case object.ClaimIfEqual:
		c.Action = plan.Adopt
		return p.answered(c, key, p.Applier.Differs(ctx, o, m))
	case object.ClaimOwn:
		c.Action = plan.Update
	case object.ClaimTakeOver:
		from := object.OwnerOf(&m.ObjectMeta)
		c = c.As(plan.Adopt, "", fmt.Sprintf("It goes over from add-on %s", from))
		if from != p.Applier.Scope.Release && m.DeletionTimestamp != nil {
			return c.As(plan.Unknown, object.ReasonWaitingForDeletion, fmt.Sprintf("It was deleted with add-on %s, and isn't gone yet", from)), nil
		}
	default:
		c.Action = plan.Adopt
	}
	applied, _, err := p.Applier.DryRun(ctx, o, live.GetUID())
	if err != nil {
		f := p.Hidden.FailureOf(key, err)
		if f.Reason == object.ReasonImmutableField && p.Recreate && install.MayRecreate(live, p.Applier.Scope.Release) {
			c.Action, c.Restarts = plan.Recreate, revision.PodTemplateOf(live) != nil
			return c, nil
		}
		return p.answered(c, key, err)
	}
	c.Altered, c.Restarts = p.fields(o, live, applied), revision.RestartsPods(live, applied) ||
		c.Action == plan.Adopt && revision.RestartsPods(p.before[key], o) // the dry run keeps what others had set
	return c, nil
}

// fields returns the fields that get another value. Values of an object that was others' aren't shown.
func (p *Previewer) fields(o, live, applied *unstructured.Unstructured) []plan.Field {
	show := o.GroupVersionKind().GroupKind() != object.SecretKind && !p.Conceals
	secrets, was := p.Hidden.All(), p.before[record.KeyOf(o)]
	var fields []plan.Field
	for _, a := range drift.AlteredBy(live, applied, p.Applier.Scope.Manager()) {
		f := plan.FieldOf(a.Path.String(), plan.ByManifest, a.Before, a.After, show && !a.ByServer, secrets)
		switch {
		case a.ByServer:
			f.Cause = plan.ByServer
		case was != nil && reflect.DeepEqual(drift.ValueAt(was.Object, a.Path), drift.ValueAt(o.Object, a.Path)):
			f.Cause = plan.ByDrift
		}
		if !a.Owned && f.Old != "" {
			f.Old = plan.Hidden
		}
		fields = append(fields, f)
	}
	return fields
}

// answered returns a change, or what an error about its object means for the plan. It is an error itself if it says nothing of the object.
func (p *Previewer) answered(c plan.Change, key record.ObjectKey, err error) (plan.Change, error) {
	if err == nil {
		return c, nil
	}
	f := p.Hidden.FailureOf(key, err)
	text := p.Hidden.In(f.Message)
	switch {
	case errors.Is(err, apply.ErrAnother):
		return c.As(plan.Unknown, "", "It was made again while it was looked at"), nil
	case f.Kind == object.Rejected && apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "dry run"):
		return c.As(plan.Unknown, f.Reason, text), nil
	case f.Kind == object.Rejected:
		return c.As(plan.Refuse, f.Reason, text), nil
	case f.Kind == object.Deferred:
		return c.As(plan.Unknown, f.Reason, text), nil
	}
	return c, f
}

// isAggregated reports whether another API server than the cluster's own has an object's kind. It may take a dry run for a write.
func (p *Previewer) isAggregated(ctx context.Context, o *unstructured.Unstructured) (bool, error) {
	gvk := o.GroupVersionKind()
	if object.IsBuiltin(gvk.GroupKind()) {
		return false, nil
	}
	once, _ := p.aggregated.LoadOrStore(gvk.GroupVersion(), sync.OnceValues(func() (bool, error) { return p.Keeper.IsAggregated(ctx, gvk.GroupVersion()) }))
	return once.(func() (bool, error))()
}

func isOfSpec(f plan.Field) bool { return strings.HasPrefix(f.Path, ".spec.") }
