// SPDX-License-Identifier: Apache-2.0

package hooks_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/webhooks/hooks"
)

// TestHolder has a ClusterAddon team/c with a watch filter, and instances that may manage it.
func TestHolder(t *testing.T) {
	holding := func(filter string, state addonsv1.GrantState, alive bool, namespaces ...string) addonsv1.ProviderInstance {
		pi := addonsv1.ProviderInstance{Spec: addonsv1.ProviderInstanceSpec{Namespaces: namespaces, WatchFilter: filter, Claim: addonsv1.ScopeClaiming}}
		pi.Status.Grant = &addonsv1.ScopeGrant{State: state}
		pi.Namespace, pi.Name = "system", "chandler"
		reason := addonsv1.HeartbeatExpiredReason
		if alive {
			reason = addonsv1.ReadyReason
		}
		conditions.Set(&pi, metav1.Condition{Type: addonsv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: reason})
		return pi
	}
	const active, expired = addonsv1.GrantGranted, addonsv1.GrantExpired
	for name, tc := range map[string]struct {
		instances    []addonsv1.ProviderInstance
		held, silent bool
	}{
		"none":                       {},
		"of all":                     {instances: []addonsv1.ProviderInstance{holding("", active, true)}, held: true},
		"of the namespace":           {instances: []addonsv1.ProviderInstance{holding("", active, true, "other", "team")}, held: true},
		"of other namespaces":        {instances: []addonsv1.ProviderInstance{holding("", active, true, "other")}},
		"of the filter":              {instances: []addonsv1.ProviderInstance{holding("blue", active, true)}, held: true},
		"of another filter":          {instances: []addonsv1.ProviderInstance{holding("green", active, true)}},
		"one that waits":             {instances: []addonsv1.ProviderInstance{holding("", addonsv1.GrantRefused, true)}},
		"silent":                     {instances: []addonsv1.ProviderInstance{holding("blue", expired, false)}, held: true, silent: true},
		"silent, and its successor":  {instances: []addonsv1.ProviderInstance{holding("blue", expired, false), holding("blue", active, true)}, held: true},
		"silent, and one of another": {instances: []addonsv1.ProviderInstance{holding("green", active, true), holding("blue", expired, false)}, held: true, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "c", Labels: map[string]string{clusterv1.WatchLabel: "blue"}}}
			held, lost := hooks.HolderOf(ca, tc.instances)
			if held != tc.held || (lost != nil) != tc.silent || lost != nil && lost.Instance != "system/chandler" {
				t.Errorf("%v, %+v", held, lost)
			}
		})
	}
}
