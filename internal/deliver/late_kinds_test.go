// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// wantNamed is an add-on with a name of its own.
func (e *env) wantNamed(name, ns string, c chart) deliver.Desired {
	want := e.want(ns, c)
	want.Name = name
	return want
}

func clusterScoped(crd string) string {
	return strings.Replace(crd, "scope: Namespaced", "scope: Cluster", 1)
}

// TestClusterScopedObjectOfALaterCRD begins with an object whose kind comes with another
// add-on, later: once applied, the object isn't taken for one of an earlier revision.
func TestClusterScopedObjectOfALaterCRD(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%t", restart), func(t *testing.T) {
			e, ns := alone(t)
			group := ns + ".example.com"
			policies := e.wantNamed("policies", ns, chart{version: "1", manifest: widget(group, "policy") + configMap("x", "a")})
			e.Expect(e.settle(policies).Reason).To(Equal(object.ReasonKindMissing))
			e.install(e.wantNamed("engine", ns, chart{version: "1", manifest: clusterScoped(crd(group))}))

			e.clock.step(11 * time.Second)
			if restart {
				e.restart()
			}
			e.install(policies)
			policy := e.get(group+"/v1", "Widget", "", "policy")
			e.Expect(policy).NotTo(BeNil(), "the add-on is ready")
			e.Expect(policy.GetLabels()).To(HaveKeyWithValue(addonsv1.AddonLabel, "policies"))

			e.Expect(e.remove(policies.Release).Gone).To(BeTrue())
			e.Expect(e.get(group+"/v1", "Widget", "", "policy")).To(BeNil(), "it is in the inventory")
		})
	}
}

// TestClusterScopedObjectOfACRDInAHook has the CRD as a hook of the same chart.
func TestClusterScopedObjectOfACRDInAHook(t *testing.T) {
	e, ns := alone(t)
	group := ns + ".example.com"
	hooks := []job.Hook{{
		Name: "widgets." + group, Kind: "CustomResourceDefinition", Path: "demo/templates/crd",
		Manifest: clusterScoped(crd(group)), Events: []string{"pre-install"},
	}}
	want := e.want(ns, chart{version: "1", manifest: widget(group, "policy") + configMap("x", "a"), hooks: hooks})
	if o := e.settle(want); o.Reason == object.ReasonKindMissing { // discovery may be a moment behind
		e.clock.step(11 * time.Second)
		e.install(want)
	}
	e.Expect(e.get(group+"/v1", "Widget", "", "policy")).NotTo(BeNil())
}
