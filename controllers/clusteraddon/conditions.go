// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/expression"
)

// conditionCheck looks whether conditions about objects of the workload cluster hold.
type conditionCheck struct{ *clusterRun }

// unmetPrecondition returns what the add-on waits for before it may be installed or
// upgraded; nil if nothing holds it. A revision that has begun isn't held any more.
func (q conditionCheck) unmetPrecondition(ctx context.Context, in *inputs, record deliver.Summary) (*unmetCondition, error) {
	if len(in.Preconditions) == 0 {
		return nil, nil
	}
	if record.Digest != "" && record.Status != deliver.StatusDeployed {
		digest, err := rendering(q).digestNow(ctx, in, record.FactsUsed)
		if err != nil || digest == record.Digest {
			return nil, err
		}
	}
	return q.firstUnmet(ctx, in.Addon, "preconditions", in.Preconditions)
}

// postcondition returns what has to hold before the add-on is ready; nil if nothing has to.
func (q conditionCheck) postcondition(a *wanted.Addon) func(context.Context) (string, time.Duration, error) {
	if len(a.Postconditions) == 0 {
		return nil
	}
	return func(ctx context.Context) (string, time.Duration, error) {
		unmet, err := q.firstUnmet(ctx, a, "postconditions", a.Postconditions)
		if unmet == nil || err != nil {
			return "", 0, err
		}
		return unmet.message, unmet.retryAfter, nil
	}
}

// unmetPostcondition looks at the postconditions of an add-on that is installed, if they
// aren't those that held before. It returns what is waited for, nil if nothing is.
func (q conditionCheck) unmetPostcondition(ctx context.Context, a *wanted.Addon, record deliver.Summary) (*unmetCondition, error) {
	if digest := a.PostconditionsDigest(); digest == "" || digest == record.Postconditions {
		return nil, nil
	}
	return q.firstUnmet(ctx, a, "postconditions", a.Postconditions)
}

// awaitPostcondition returns the result of an installed add-on that waits for a postcondition.
func awaitPostcondition(a *wanted.Addon, unmet *unmetCondition, status addonsv1.AddonStatus) addonResult {
	status.Phase, status.Reason = addonsv1.AddonUpgrading, deliver.ReasonWaitingForPostcondition
	status.Message = shorten("Waiting for " + unmet.message)
	if deadline := a.ProgressDeadline(); unmet.waited >= deadline {
		status.Phase, status.Reason = addonsv1.AddonFailed, deliver.ReasonReadinessTimeout
		status.Message = shorten(fmt.Sprintf("a postcondition doesn't hold within %s: %s", deadline, unmet.message))
	}
	return addonResult{status: status, applied: true, followUp: followUp{retryAfter: unmet.retryAfter}}
}

// firstUnmet returns the first condition that doesn't hold, nil if all do.
func (q conditionCheck) firstUnmet(ctx context.Context, a *wanted.Addon, field string, all []addonsv1.ObjectsCondition) (*unmetCondition, error) {
	memory := q.memory.of(a.Release())
	for i := range all {
		missing, err := q.unmet(ctx, a, &all[i])
		if err != nil {
			return nil, err
		}
		if missing != "" {
			unmet := memory.wait(field, q.now)
			unmet.message = fmt.Sprintf("addons[%s].%s[%d]: %s", a.Name, field, i, missing)
			return unmet, nil
		}
	}
	delete(memory.unmetSince, field)
	return nil, nil
}

// unmet says why a condition doesn't hold, "" if it does.
func (q conditionCheck) unmet(ctx context.Context, a *wanted.Addon, c *addonsv1.ObjectsCondition) (string, error) {
	program, err := expression.Of(c)
	if err != nil {
		return err.Error(), nil //nolint:nilerr // a fault of the expression is what people are told
	}
	objects := map[string]any{}
	for _, o := range c.Objects {
		object, missing, err := q.conditionObject(ctx, a, o)
		if missing != "" || err != nil {
			return missing, err
		}
		objects[o.Key] = object
	}
	holds, err := program.Holds(ctx, objects)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return fmt.Sprintf("%q doesn't hold: %v", c.Expression, err), nil
	case !holds:
		return fmt.Sprintf("%q isn't true", c.Expression), nil
	}
	return "", nil
}

// conditionObject reads an object of the workload cluster, or says why it can't be had.
func (q conditionCheck) conditionObject(ctx context.Context, a *wanted.Addon, o addonsv1.ConditionObject) (object map[string]any, missing string, err error) {
	if wrong := expression.CheckObject(o); wrong != nil {
		return nil, fmt.Sprintf("objects[%s].%v", o.Key, wrong), nil
	}
	found := &unstructured.Unstructured{}
	found.SetAPIVersion(o.APIVersion)
	found.SetKind(o.Kind)
	target, err := q.workload.As(a.Spec.ServiceAccountName)
	if err != nil {
		return nil, "", err
	}
	workload := target.Client
	if o.Namespace == "" {
		namespaced, err := workload.IsObjectNamespaced(found)
		if err != nil {
			missing, err = unreadable(ctx, o, err)
			return nil, missing, err
		}
		if namespaced {
			return nil, fmt.Sprintf("objects[%s].namespace: a %s is in a namespace; say in which one", o.Key, o.Kind), nil
		}
	}
	if err := workload.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, found); err != nil {
		missing, err = unreadable(ctx, o, err)
		return nil, missing, err
	}
	return found.Object, "", nil
}

// unreadable says what an error about an object means for the condition.
func unreadable(ctx context.Context, o addonsv1.ConditionObject, err error) (missing string, _ error) {
	name := o.Kind + " " + o.Name
	if o.Namespace != "" {
		name = o.Kind + " " + o.Namespace + "/" + o.Name
	}
	answer := apierrors.APIStatus(nil)
	switch {
	case apierrors.IsNotFound(err):
		return name + " doesn't exist", nil
	case meta.IsNoMatchError(err):
		return fmt.Sprintf("the cluster doesn't know the kind of %s, %s", name, o.APIVersion), nil
	case apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err):
		return fmt.Sprintf("%s can't be read: %s", name, apierrors.ReasonForError(err)), nil
	case isUnreachable(err), errors.As(err, &answer):
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	// The words are the client's, or of what is in front of the cluster, and for the log alone.
	log.FromContext(ctx).Error(err, "Could not read an object that a condition is about", "key", o.Key, "object", name)
	return fmt.Sprintf("%s, %s, couldn't be asked for, or the answer can't be read; the manager's log has the error", name, o.APIVersion), nil
}
