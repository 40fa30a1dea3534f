// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// rollOut has an edit reach one cluster, on which it crashes a moment later: that cluster goes back, and the others never
// see the edit.
func (d *demo) rollOut(ctx context.Context) error {
	heading("Rollout: another edit reaches one cluster first, and soaks there for five minutes. spec.rollout.onFailure is RollBack.")
	before := d.stack.DeepCopy()
	d.stack.Spec.Rollout = &addonsv1.Rollout{
		Waves:     []addonsv1.RolloutWave{{Name: "canary", Size: ptr.To(intstr.FromInt32(1)), Soak: &metav1.Duration{Duration: 5 * time.Minute}}},
		OnFailure: addonsv1.RolloutRollBack,
	}
	web := &d.stack.Spec.Addons[slices.IndexFunc(d.stack.Spec.Addons, func(a addonsv1.Addon) bool { return a.Name == upgraded })]
	web.Values = &apiextensionsv1.JSON{Raw: []byte(`{"replicas":3,"podAnnotations":{"example.com/build":"bad"}}`)}
	started := time.Now()
	if err := d.management.Patch(ctx, d.stack, client.MergeFrom(before)); err != nil {
		return err
	}
	if _, err := d.awaitRollout(ctx, addonsv1.RolloutSoaking); err != nil {
		return err
	}
	canary, err := d.canary(ctx)
	if err != nil {
		return err
	}
	done(started, "%s is Ready with it; the others wait. Now its pods crash.", canary.name)
	started = time.Now()
	if _, err := d.breakPods(ctx, canary); err != nil {
		return err
	}
	said, err := d.awaitRollout(ctx, addonsv1.RolloutRolledBack)
	if err != nil {
		return err
	}
	done(started, "the AddonStack says: %s", said)

	started = time.Now()
	edited := d.stack.DeepCopy()
	d.stack.Spec = before.Spec
	if err := d.management.Patch(ctx, d.stack, client.MergeFrom(edited)); err != nil {
		return err
	}
	if said, err = d.awaitStack(ctx, metav1.ConditionTrue, ""); err != nil {
		return err
	}
	done(started, "the edit is undone, and the AddonStack says: %s", said)
	return nil
}

// awaitRollout waits until the rollout is in a phase, and returns what the AddonStack says of it.
func (d *demo) awaitRollout(ctx context.Context, phase addonsv1.RolloutPhase) (said string, err error) {
	return d.awaitCondition(ctx, addonsv1.RolledOutCondition, func(c *metav1.Condition) bool { return c.Reason == string(phase) })
}

// canary returns the cluster that alone is to run what the rollout brings.
func (d *demo) canary(ctx context.Context) (*member, error) {
	stack := &addonsv1.AddonStack{}
	if err := d.management.Get(ctx, client.ObjectKeyFromObject(d.stack), stack); err != nil {
		return nil, err
	}
	list := &addonsv1.ClusterAddonList{}
	if err := d.management.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	for _, m := range d.members {
		if slices.ContainsFunc(list.Items, func(ca addonsv1.ClusterAddon) bool {
			return ca.Spec.ClusterName == m.name && slices.ContainsFunc(ca.Spec.Stacks, func(s addonsv1.StackRevision) bool { return s.Revision == stack.Status.Rollout.Revision })
		}) {
			return m, nil
		}
	}
	return nil, fmt.Errorf("no cluster has %s", stack.Status.Rollout.Revision)
}
