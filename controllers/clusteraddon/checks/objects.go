// SPDX-License-Identifier: Apache-2.0

// Package checks evaluates the conditions of add-ons about objects of the workload cluster.
package checks

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
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/internal/expression"
)

// Checks evaluate the conditions of one add-on about objects of the workload cluster.
type Checks struct {
	Workload workload.Cluster
	Addon    *wanted.Addon
	Memory   *Memory
	Now      time.Time
}

// First returns the first condition that doesn't hold, nil if all do.
func (q Checks) First(ctx context.Context, field string, all []addonsv1.ObjectsCondition) (*Unmet, error) {
	for i := range all {
		missing, err := q.unmet(ctx, &all[i])
		if err != nil {
			return nil, err
		}
		if missing != "" {
			unmet := q.Memory.wait(field, q.Now)
			unmet.Message = fmt.Sprintf("addons[%s].%s[%d]: %s", q.Addon.Name, field, i, missing)
			return unmet, nil
		}
	}
	delete(q.Memory.since, field)
	return nil, nil
}

// unmet says why a condition doesn't hold, "" if it does.
func (q Checks) unmet(ctx context.Context, c *addonsv1.ObjectsCondition) (string, error) {
	program, err := expression.Of(c)
	if err != nil {
		return err.Error(), nil //nolint:nilerr // a fault of the expression is what people are told
	}
	objects := map[string]any{}
	for _, o := range c.Objects {
		object, missing, err := q.Object(ctx, o)
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

// Object reads an object of the workload cluster, or says why it can't be had.
func (q Checks) Object(ctx context.Context, o addonsv1.ConditionObject) (object map[string]any, missing string, err error) {
	if wrong := expression.CheckObject(o); wrong != nil {
		return nil, fmt.Sprintf("objects[%s].%v", o.Key, wrong), nil
	}
	found := &unstructured.Unstructured{}
	found.SetAPIVersion(o.APIVersion)
	found.SetKind(o.Kind)
	target, err := q.Workload.As(q.Addon.Spec.ServiceAccountName)
	if err != nil {
		return nil, "", err
	}
	if o.Namespace == "" {
		namespaced, err := target.Client.IsObjectNamespaced(found)
		if err != nil {
			missing, err = Unreadable(ctx, o, err)
			return nil, missing, err
		}
		if namespaced {
			return nil, fmt.Sprintf("objects[%s].namespace: a %s is in a namespace; say in which one", o.Key, o.Kind), nil
		}
	}
	if err := target.Client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, found); err != nil {
		missing, err = Unreadable(ctx, o, err)
		return nil, missing, err
	}
	return found.Object, "", nil
}

// Unreadable says what an error about an object means for the condition.
func Unreadable(ctx context.Context, o addonsv1.ConditionObject, err error) (missing string, _ error) {
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
	case workload.IsUnreachable(err), errors.As(err, &answer):
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	// The words are the client's, or of what is in front of the cluster, and for the log alone.
	log.FromContext(ctx).Error(err, "Could not read an object that a condition is about", "key", o.Key, "object", name)
	return fmt.Sprintf("%s, %s, couldn't be asked for, or the answer can't be read; the manager's log has the error", name, o.APIVersion), nil
}

// Unmet is what an add-on waits for.
type Unmet struct {
	Reason     string // "" for a condition of the add-on
	Message    string
	RetryAfter time.Duration
	Waited     time.Duration // so far, by this process
}
