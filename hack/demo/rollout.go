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
	before, started := d.stack.Spec.DeepCopy(), time.Now()
	if err := d.editStack(ctx, func(spec *addonsv1.AddonStackSpec) {
		spec.Rollout = &addonsv1.Rollout{
			Waves:     []addonsv1.RolloutWave{{Name: "canary", Size: ptr.To(intstr.FromInt32(1)), Soak: &metav1.Duration{Duration: 5 * time.Minute}}},
			OnFailure: addonsv1.RolloutRollBack,
		}
		web := slices.IndexFunc(spec.Addons, func(a addonsv1.Addon) bool { return a.Name == upgraded })
		spec.Addons[web].Values = &apiextensionsv1.JSON{Raw: []byte(`{"replicas":3,"podAnnotations":{"example.com/build":"bad"}}`)}
	}); err != nil {
		return err
	}
	soaks, rolledBack := string(addonsv1.RolloutSoaking)+": ", string(addonsv1.RolloutRolledBack)+": "
	if err := d.awaitCondition(ctx, addonsv1.RolledOutCondition, metav1.ConditionFalse, soaks, func(string) {}); err != nil {
		return err
	}
	canary, err := d.canary(ctx)
	if err != nil {
		return err
	}
	done(started, "%s is Ready with it; the others wait. Now its pods crash.", canary.name)
	started = time.Now()
	if err := d.breakPods(ctx, canary); err != nil {
		return err
	}
	if err := d.awaitCondition(ctx, addonsv1.RolledOutCondition, metav1.ConditionFalse, rolledBack, says(started, "")); err != nil {
		return err
	}
	started = time.Now()
	if err := d.editStack(ctx, func(spec *addonsv1.AddonStackSpec) { *spec = *before }); err != nil {
		return err
	}
	return d.awaitCondition(ctx, addonsv1.ReadyCondition, metav1.ConditionTrue, "", says(started, "the edit is undone, and "))
}

// canary returns the cluster that alone is to run what the rollout brings.
func (d *demo) canary(ctx context.Context) (*member, error) {
	stack := &addonsv1.AddonStack{}
	if err := d.management.Get(ctx, client.ObjectKeyFromObject(d.stack), stack); err != nil {
		return nil, err
	}
	for _, m := range d.members {
		ca, err := d.clusterAddon(ctx, m)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(ca.Spec.Stacks, func(s addonsv1.StackRevision) bool { return s.Revision == stack.Status.Rollout.Revision }) {
			return m, nil
		}
	}
	return nil, fmt.Errorf("no cluster has %s", stack.Status.Rollout.Revision)
}
