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
	return d.awaitCondition(ctx, addonsv1.ReadyCondition, func(c *metav1.Condition) bool {
		return c.Status == status && strings.Contains(c.Message, text)
	})
}

// awaitCondition waits until a condition of the AddonStack is as expected, and returns its message.
func (d *demo) awaitCondition(ctx context.Context, kind string, isExpected func(*metav1.Condition) bool) (said string, err error) {
	err = d.until(ctx, func() error {
		stack := &addonsv1.AddonStack{}
		if err := d.management.Get(ctx, client.ObjectKeyFromObject(d.stack), stack); err != nil {
			return err
		}
		c := meta.FindStatusCondition(stack.Status.Conditions, kind)
		if c == nil || !isExpected(c) {
			return fmt.Errorf("condition %s of AddonStack %s isn't as expected yet: %+v", kind, stack.Name, c)
		}
		said = c.Message
		return nil
	})
	return said, err
}
