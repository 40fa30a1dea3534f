// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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
	pods, err := d.breakPods(ctx, m)
	if err != nil {
		return err
	}
	said, err := d.awaitStack(ctx, metav1.ConditionFalse, health.ReasonCrashLoopBackOff)
	if err != nil {
		return err
	}
	done(started, "the AddonStack says: %s", said)
	started = time.Now()
	for i := range pods { // their ReplicaSet makes others, which run
		if err := m.client.Delete(ctx, &pods[i]); err != nil {
			return err
		}
	}
	if said, err = d.awaitStack(ctx, metav1.ConditionTrue, ""); err != nil {
		return err
	}
	done(started, "other pods run, and the AddonStack says: %s", said)
	return nil
}

// breakPods has all pods of the add-on crash on a cluster, and returns them.
func (d *demo) breakPods(ctx context.Context, m *member) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := m.client.List(ctx, pods, client.InNamespace(upgraded)); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		controlplane.Break(&pods.Items[i], health.ReasonCrashLoopBackOff)
		if err := m.client.Status().Update(ctx, &pods.Items[i]); err != nil {
			return nil, err
		}
	}
	return pods.Items, nil
}

// awaitStack waits until the AddonStack is Ready, or not, and says so with a text. It returns all that it says.
func (d *demo) awaitStack(ctx context.Context, status metav1.ConditionStatus, text string) (said string, err error) {
	err = d.until(ctx, func() error {
		stack := &addonsv1.AddonStack{}
		if err := d.management.Get(ctx, client.ObjectKeyFromObject(d.stack), stack); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(stack.Status.Conditions, addonsv1.ReadyCondition)
		if ready == nil || ready.Status != status || !strings.Contains(ready.Message, text) {
			return fmt.Errorf("AddonStack %s isn't Ready=%s yet: %+v", stack.Name, status, ready)
		}
		said = ready.Message
		return nil
	})
	return said, err
}
