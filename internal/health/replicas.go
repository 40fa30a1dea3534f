// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// replicas is where a workload stands.
type replicas struct {
	wanted, available int32
	generation        int64
	updating          bool   // pods are being replaced
	refused           string // why no pods are made, "" if they are
	stuck             bool   // an update didn't come to its end in its time
	selector          *metav1.LabelSelector
}

// lacks reports whether replicas are missing, or refused.
func (is replicas) lacks() bool { return is.available < is.wanted || is.refused != "" }

// replicasOf reads a workload. The error says that it isn't one.
func replicasOf(o *unstructured.Unstructured) (replicas, error) {
	switch o.GetKind() {
	case "Deployment":
		d := &appsv1.Deployment{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d)
		return ofDeployment(d), err
	case "StatefulSet":
		s := &appsv1.StatefulSet{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, s)
		return replicas{
			wanted: ptr.Deref(s.Spec.Replicas, 1), available: s.Status.AvailableReplicas, generation: s.Generation, selector: s.Spec.Selector,
			updating: s.Status.ObservedGeneration < s.Generation || s.Status.UpdateRevision != s.Status.CurrentRevision,
		}, err
	default:
		d := &appsv1.DaemonSet{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d)
		return replicas{
			wanted: d.Status.DesiredNumberScheduled, available: d.Status.NumberAvailable, generation: d.Generation, selector: d.Spec.Selector,
			updating: d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedNumberScheduled < d.Status.DesiredNumberScheduled,
		}, err
	}
}

func ofDeployment(d *appsv1.Deployment) replicas {
	r := replicas{
		wanted: ptr.Deref(d.Spec.Replicas, 1), available: d.Status.AvailableReplicas, generation: d.Generation, selector: d.Spec.Selector,
		updating: d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas < d.Status.Replicas,
	}
	for _, c := range d.Status.Conditions {
		switch {
		case c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue:
			r.refused = cmp.Or(c.Reason, "ReplicaFailure")
		case c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse:
			r.stuck = true
		}
	}
	return r
}
