// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// simulate has workloads be ready at once, by a request each: controllers and nodes would take more than what is measured.
func simulate(t testing.TB, server kubernetes.Interface) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cancel)
	factory := informers.NewSharedInformerFactory(server, 0)
	handle := func(informer cache.SharedIndexInformer, f func(obj any)) {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { go f(obj) }, UpdateFunc: func(_, obj any) { go f(obj) },
		}); err != nil {
			t.Fatal(err)
		}
	}
	// Who comes late gets a conflict; the next event tells.
	handle(factory.Apps().V1().Deployments().Informer(), func(obj any) {
		d := obj.(*appsv1.Deployment).DeepCopy()
		if d.Status.ObservedGeneration == d.Generation {
			return
		}
		n := ptr.Deref(d.Spec.Replicas, 1)
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		}
		_, _ = server.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
	})
	handle(factory.Apps().V1().DaemonSets().Informer(), func(obj any) {
		d := obj.(*appsv1.DaemonSet).DeepCopy()
		if d.Status.ObservedGeneration == d.Generation {
			return
		}
		d.Status = appsv1.DaemonSetStatus{
			ObservedGeneration: d.Generation, CurrentNumberScheduled: 1, DesiredNumberScheduled: 1, NumberReady: 1, UpdatedNumberScheduled: 1, NumberAvailable: 1,
		}
		_, _ = server.AppsV1().DaemonSets(d.Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
	})
	handle(factory.Batch().V1().Jobs().Informer(), func(obj any) {
		j := obj.(*batchv1.Job).DeepCopy()
		if len(j.Status.Conditions) > 0 || j.DeletionTimestamp != nil {
			return
		}
		now := metav1.Now()
		j.Status = batchv1.JobStatus{
			StartTime: &now, CompletionTime: &now, Succeeded: 1, Ready: ptr.To[int32](0), Terminating: ptr.To[int32](0),
			UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{},
		}
		for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
				Type: kind, Status: corev1.ConditionTrue, Reason: "CompletionsReached", LastProbeTime: now, LastTransitionTime: now,
			})
		}
		_, _ = server.BatchV1().Jobs(j.Namespace).UpdateStatus(ctx, j, metav1.UpdateOptions{})
	})
	factory.Start(ctx.Done())
}

// processTime is the processor time of this process.
func processTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
