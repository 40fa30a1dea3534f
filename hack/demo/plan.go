// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// plan shows what an edit of the stack will do, before it is made.
func (d *demo) plan(ctx context.Context, edit func(*addonsv1.AddonStackSpec)) error {
	started, spec := time.Now(), d.stack.Spec.DeepCopy()
	edit(spec)
	template, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	p := &addonsv1.AddonPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.stack.Namespace, Name: "upgrade"},
		Spec:       addonsv1.AddonPlanSpec{StackName: d.stack.Name, Template: &apiextensionsv1.JSON{Raw: template}},
	}
	if err := d.management.Create(ctx, p); err != nil {
		return fmt.Errorf("making AddonPlan %s: %w", p.Name, err)
	}
	if err := d.until(ctx, func() error {
		if err := d.management.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil || p.Status.Phase == addonsv1.PlanDone {
			return err
		}
		return fmt.Errorf("AddonPlan %s is %s: %s", p.Name, p.Status.Phase, conditions.GetMessage(p, addonsv1.CompleteCondition))
	}); err != nil {
		return err
	}
	done(started, "a plan says what that will do. %s", conditions.GetMessage(p, addonsv1.CompleteCondition))
	for _, g := range p.Status.Groups {
		for _, c := range g.Changes {
			fmt.Printf("  on %d clusters: %s %s %s/%s\n", g.Clusters, c.Action, c.Kind, c.Namespace, c.Name)
			for _, f := range c.Fields {
				fmt.Printf("      %s: %s -> %s\n", f.Path, f.Old, f.New)
			}
		}
	}
	return nil
}
