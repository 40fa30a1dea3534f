// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

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
