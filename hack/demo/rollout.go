// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// rollOut has an edit reach the clusters of one region, here one, on which it crashes a moment later: that cluster goes
// back, and the others never see the edit.
func (d *demo) rollOut(ctx context.Context) error {
	canary := d.members[0]
	heading("Rollout: another edit reaches one cluster first, and soaks there for five minutes. spec.rollout.onFailure is RollBack.")
	before, started := d.stack.Spec.DeepCopy(), time.Now()
	if err := d.editStack(ctx, func(spec *addonsv1.AddonStackSpec) {
		spec.Rollout = &addonsv1.Rollout{
			Waves: []addonsv1.RolloutWave{{
				Name: "canary", Soak: &metav1.Duration{Duration: 5 * time.Minute},
				ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": canary.region}},
			}},
			MinReady: &metav1.Duration{}, OnFailure: addonsv1.RolloutRollBack,
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
