// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// explainFailure shows what a user would look at after a test has failed: the
// objects. The managers' logs are shown beside.
func (tn *tenant) explainFailure() {
	if !tn.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tn.t.Context()), 10*time.Second)
	defer cancel()
	var all strings.Builder
	stacks := &addonsv1.AddonStackList{}
	if err := world.hub.List(ctx, stacks, client.InNamespace(tn.namespace)); err != nil {
		tn.t.Log(err)
	}
	for i := range stacks.Items {
		stack := &stacks.Items[i]
		fmt.Fprintf(&all, "AddonStack %s, generation %d, clusters %+v\n%s", stack.Name, stack.Generation, stack.Status.Clusters, conditionsOf(stack.Status.Conditions))
	}
	clusterAddons := &addonsv1.ClusterAddonList{}
	if err := world.hub.List(ctx, clusterAddons, client.InNamespace(tn.namespace)); err != nil {
		tn.t.Log(err)
	}
	for i := range clusterAddons.Items {
		ca := &clusterAddons.Items[i]
		fmt.Fprintf(&all, "ClusterAddon %s, stacks %+v\n%s", ca.Name, ca.Spec.Stacks, conditionsOf(ca.Status.Conditions))
		for _, a := range ca.Status.Addons {
			fmt.Fprintf(&all, "  add-on %s/%s of %s: %s %s, revision %d, %s\n", a.Namespace, a.Name, a.Stack, a.Phase, a.Reason, a.Revision, a.Message)
		}
	}
	tn.t.Logf("namespace %s:\n%s", tn.namespace, all.String())
}

// conditionsOf are those that aren't as they are when all is well, and Ready.
func conditionsOf(all []metav1.Condition) string {
	var text strings.Builder
	for _, c := range all {
		if c.Message != "" || c.Status != metav1.ConditionTrue || c.Type == addonsv1.ReadyCondition {
			fmt.Fprintf(&text, "  %s is %s since %s, generation %d: %s %s\n", c.Type, c.Status, c.LastTransitionTime.Format(time.TimeOnly), c.ObservedGeneration, c.Reason, c.Message)
		}
	}
	return text.String()
}
