// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// clusterCheck says what is wrong with a ClusterAddon, nil if nothing is.
type clusterCheck func(*addonsv1.ClusterAddon) error

// awaitCluster waits until the ClusterAddon of a Cluster passes all checks.
func (tn *tenant) awaitCluster(cluster, reason string, checks ...clusterCheck) *addonsv1.ClusterAddon {
	tn.t.Helper()
	return await(tn.t, world.hub, tn.clusterAddon(cluster), patience, reason, func(ca *addonsv1.ClusterAddon) error {
		var errs []error
		for _, check := range checks {
			errs = append(errs, check(ca))
		}
		return errors.Join(errs...)
	})
}

// awaitReady waits until the stack's newest spec is Ready on all of its
// clusters, as "kubectl wait" would.
func (tn *tenant) awaitReady(stack, reason string) *addonsv1.AddonStack {
	tn.t.Helper()
	return tn.awaitStack(stack, reason, addonsv1.ReadyCondition, metav1.ConditionTrue, addonsv1.ReadyReason, "")
}

// awaitStack waits for a condition of the stack's newest spec.
func (tn *tenant) awaitStack(stack, reason, kind string, status metav1.ConditionStatus, because, message string) *addonsv1.AddonStack {
	tn.t.Helper()
	return await(tn.t, world.hub, tn.newStack(stack, nil), patience, reason, func(s *addonsv1.AddonStack) error {
		if s.Status.ObservedGeneration != s.Generation {
			return fmt.Errorf("status is about generation %d of %d", s.Status.ObservedGeneration, s.Generation)
		}
		return checkCondition(s, kind, status, because, message)
	})
}

// condition expects one, with an empty reason and message for any.
func condition(kind string, status metav1.ConditionStatus, reason, message string) clusterCheck {
	return func(ca *addonsv1.ClusterAddon) error { return checkCondition(ca, kind, status, reason, message) }
}

func checkCondition(obj conditions.Getter, kind string, status metav1.ConditionStatus, reason, message string) error {
	c := conditions.Get(obj, kind)
	switch {
	case c == nil:
		return fmt.Errorf("no condition %s", kind)
	case c.Status != status, reason != "" && c.Reason != reason, !strings.Contains(c.Message, message):
		return fmt.Errorf("condition %s is %s, %s: %q; expected %s, %s: %q", kind, c.Status, c.Reason, c.Message, status, reason, message)
	}
	return nil
}

// ready expects just these add-ons, all ready, and the Ready condition.
func ready(addons ...string) clusterCheck {
	return func(ca *addonsv1.ClusterAddon) error {
		if ca.Status.ObservedGeneration != ca.Generation {
			return fmt.Errorf("status is about generation %d of %d", ca.Status.ObservedGeneration, ca.Generation)
		}
		if len(ca.Status.Addons) != len(addons) {
			return fmt.Errorf("status has %d add-ons, expected %v", len(ca.Status.Addons), addons)
		}
		for _, name := range addons {
			if err := phase(name, addonsv1.AddonReady, "", "")(ca); err != nil {
				return err
			}
		}
		return checkCondition(ca, addonsv1.ReadyCondition, metav1.ConditionTrue, "", "")
	}
}

// phase expects an add-on to be in it, with an empty reason and message for any.
func phase(addon string, wanted addonsv1.AddonPhase, reason, message string) clusterCheck {
	return func(ca *addonsv1.ClusterAddon) error {
		s := statusOf(ca, addon)
		switch {
		case s == nil:
			return fmt.Errorf("no add-on %s in the status", addon)
		case s.Phase != wanted, reason != "" && s.Reason != reason, !strings.Contains(s.Message, message):
			return fmt.Errorf("add-on %s is %s, %s: %q; expected %s, %s: %q", addon, s.Phase, s.Reason, s.Message, wanted, reason, message)
		}
		return nil
	}
}

// installedAs expects an add-on to be ready at a revision and version.
func installedAs(addon string, revision int32, version string) clusterCheck {
	return func(ca *addonsv1.ClusterAddon) error {
		if err := phase(addon, addonsv1.AddonReady, "", "")(ca); err != nil {
			return err
		}
		if s := statusOf(ca, addon); s.Revision != revision || version != "" && s.Version != version {
			return fmt.Errorf("add-on %s is %s at revision %d, expected %s at %d", addon, s.Version, s.Revision, version, revision)
		}
		return nil
	}
}

func statusOf(ca *addonsv1.ClusterAddon, addon string) *addonsv1.AddonStatus {
	for i := range ca.Status.Addons {
		if ca.Status.Addons[i].Name == addon {
			return &ca.Status.Addons[i]
		}
	}
	return nil
}

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
