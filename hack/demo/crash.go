// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/health"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

// crash has the pods of an add-on that is Ready crash, and then run again. There are no kubelets, so the demo says of them
// what a kubelet would.
func (d *demo) crash(ctx context.Context) error {
	m := d.members[0]
	heading("Health: on %s all pods of the add-on %s crash, long after it was Ready. spec.degradedAfterSeconds is %.0f.", m.name, upgraded, degradedAfter.Seconds())
	started := time.Now()
	if err := d.breakPods(ctx, m); err != nil {
		return err
	}
	if err := d.awaitCondition(ctx, addonsv1.ReadyCondition, metav1.ConditionFalse, health.ReasonCrashLoopBackOff, says(started, "")); err != nil {
		return err
	}
	started = time.Now()
	if err := m.client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(upgraded)); err != nil { // their ReplicaSet makes others, which run
		return err
	}
	return d.awaitCondition(ctx, addonsv1.ReadyCondition, metav1.ConditionTrue, "", says(started, "other pods run, and "))
}

// breakPods has all pods of the add-on crash on a cluster.
func (d *demo) breakPods(ctx context.Context, m *member) error {
	pods := &corev1.PodList{}
	if err := m.client.List(ctx, pods, client.InNamespace(upgraded)); err != nil {
		return err
	}
	for i := range pods.Items {
		controlplane.Break(&pods.Items[i], health.ReasonCrashLoopBackOff)
		if err := m.client.Status().Update(ctx, &pods.Items[i]); client.IgnoreNotFound(err) != nil { // one of the image that was set may be gone
			return err
		}
	}
	return nil
}
