// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// maxPods is how many pods of a workload are looked at.
const maxPods = 50

// Evaluates reports whether objects of a kind are evaluated of an add-on with these readiness checks. Jobs aren't: they end.
func Evaluates(kind schema.GroupKind, checks []addonsv1.ReadinessCheck) bool {
	if kind.String() == "Job.batch" {
		return false
	}
	return readiness.IsWorkload(kind) || readiness.IsAbout(checks, kind)
}

// Look reads an object, and for a workload that lacks replicas some of its pods. It returns what is wrong, nil if nothing
// is known to be, what is to be given to the next look, and the number of requests.
func Look(ctx context.Context, c client.Client, key record.ObjectKey, checks readiness.Checks, before Before) (*Finding, Before, int, error) {
	kind := schema.GroupKind{Group: key.Group, Kind: key.Kind}
	mapping, err := c.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil, Before{}, 0, nil // it is a matter of drift that it is gone
	}
	if err != nil {
		return nil, before, 0, fmt.Errorf("looking at %s: %w", key, err)
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(mapping.GroupVersionKind)
	err = c.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, o)
	switch {
	case apierrors.IsNotFound(err):
		return nil, Before{}, 1, nil
	case apierrors.IsForbidden(err): // nothing is known of it, until it changes again
		return nil, before, 1, nil
	}
	if err != nil {
		return nil, before, 1, fmt.Errorf("looking at %s: %w", key, err)
	}
	finding, requests := (*Finding)(nil), 1
	if readiness.IsWorkload(kind) {
		finding, before, requests, err = lookAtWorkload(ctx, c, o, before)
	}
	if finding == nil && err == nil {
		if check, _ := checks.FirstUnmet(ctx, o); check != nil {
			finding = &Finding{Reason: ReasonObjectNotReady, Message: "readiness check isn't true any more: " + check.Expression, Words: readiness.WhyNotReady(o)}
		}
	}
	if finding != nil {
		finding.Message = fmt.Sprintf("%s: %s", key, finding.Message)
	}
	return finding, before, requests, err
}

// lookAtWorkload evaluates a workload that was read.
func lookAtWorkload(ctx context.Context, c client.Client, o *unstructured.Unstructured, before Before) (*Finding, Before, int, error) {
	is, err := replicasOf(o)
	if err != nil {
		return nil, before, 1, nil // an object that isn't as Kubernetes has it isn't evaluated
	}
	ctx, release := budget.Holding(ctx) // until the pods are evaluated
	defer release()
	var pods []corev1.Pod
	requests := 1
	if is.lacks() {
		requests++
		if pods, err = podsOf(ctx, c, o, is.selector); err != nil {
			return nil, before, requests, err
		}
	}
	finding, before := is.evaluate(pods, before)
	return finding, before, requests, nil
}

// LookAtPods reads some pods of a workload that isn't ready yet, and returns why they don't run; nil if nothing is known.
// Only the selector of the object counts.
func LookAtPods(ctx context.Context, c client.Client, o *unstructured.Unstructured) (*Finding, error) {
	is, err := replicasOf(o)
	if err != nil {
		return nil, nil // an object that isn't as Kubernetes has it isn't evaluated
	}
	ctx, release := budget.Holding(ctx) // until the pods are evaluated
	defer release()
	pods, err := podsOf(ctx, c, o, is.selector)
	return whyNoneRuns(pods), err
}

// podsOf reads some pods of a workload; none if that is forbidden.
func podsOf(ctx context.Context, c client.Client, o *unstructured.Unstructured, of *metav1.LabelSelector) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(of)
	if err != nil || selector.Empty() {
		selector = labels.Nothing()
	}
	pods := &corev1.PodList{}
	err = c.List(ctx, pods, client.InNamespace(o.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}, client.Limit(maxPods))
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("listing the pods of %s %s: %w", o.GetKind(), client.ObjectKeyFromObject(o), err)
	}
	return pods.Items, nil
}
